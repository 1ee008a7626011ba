"""Nothing that a test learns of an endpoint may reach the user's own folder, nor another test."""

import pytest


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLOOP_DATA_DIR", str(tmp_path / "data"))
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)
    return tmp_path / "data"
