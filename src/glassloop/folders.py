"""Where a user's own files are. One rule for all who keep something: the variable, else the system's place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

CONFIG_DIR, DATA_DIR = "GLASSLOOP_CONFIG_DIR", "GLASSLOOP_DATA_DIR"


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where configuration is, or what GLASSLOOP_CONFIG_DIR in the environment says."""
    told = (os.environ if environ is None else environ).get(CONFIG_DIR)
    if told:
        return Path(told).expanduser()
    import platformdirs

    return platformdirs.user_config_path("glassloop", appauthor=False)


def data_folder() -> Path:
    """Where sessions and what was learned are kept, or what GLASSLOOP_DATA_DIR in the environment says."""
    told = os.environ.get(DATA_DIR)
    if told:
        return Path(told).expanduser()
    import platformdirs

    return platformdirs.user_data_path("glassloop", appauthor=False)
