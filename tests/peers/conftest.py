"""One running server of each kind for the whole test run. Marked `peers`: started by `make test-peers` only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers import build
from tests.peers.kit import Peer, free_port, running

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.peers)


@pytest.fixture(autouse=True)
def _learns_nothing_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSLOOP_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peers")


def installed(requirement: str, program: str) -> Path:
    """A peer's program. Fails, saying what to do, where it is not installed."""
    path = build.folder_of(requirement) / program
    assert path.exists(), (
        f"{requirement} is not installed; run: {Path(sys.executable).name} tests/peers/build.py"
    )
    return path


@pytest.fixture(scope="session")
def aimock(folder: Path) -> Iterator[Peer]:
    """Answers by `aimock.json`; a question that is not there is refused."""
    peer = Peer(f"http://127.0.0.1:{free_port()}", "gpt-4o", "peers-key")
    program = installed(build.AIMOCK, "node_modules/.bin/llmock")
    command = [program, "--port", peer.root.rsplit(":", 1)[1], "--strict", "-f", HERE / "aimock.json"]
    env = {"AIMOCK_API_KEYS": "peers-key"}
    with running(command, peer.root, "/health", folder / "aimock.log", env):
        yield peer


@pytest.fixture(scope="session")
def llmock_server(folder: Path) -> Iterator[Peer]:
    peer = Peer(f"http://127.0.0.1:{free_port()}", "gpt-4o")
    program = installed(build.LLMOCK, "bin/llmock")
    # It counts a retry as one only if it saw the stream hung up before all was written: so it must not write at once.
    paced = ["--context-window", "2000", "--stream-chunk-delay-ms", "10"]
    command = [program, "serve", "--port", peer.root.rsplit(":", 1)[1], *paced]
    with running(command, peer.root, "/health", folder / "llmock.log"):
        yield peer


@pytest.fixture
def llmock(llmock_server: Peer) -> Peer:
    """It forgets what went before each test."""
    llmock_server.ask("/_llmock/reset", {})
    return llmock_server


@pytest.fixture(scope="session")
def litellm(folder: Path, aimock: Peer) -> Iterator[Peer]:
    """A gateway with mock models, and with one that it passes on to aimock."""
    peer = Peer(f"http://127.0.0.1:{free_port()}", "says", "sk-peers")
    program = installed(build.LITELLM, "bin/litellm")
    config = json.loads((HERE / "litellm.json").read_text("utf-8"))
    relayed = {"model": "openai/gpt-4o", "api_key": aimock.key, "api_base": aimock.base_url}
    config["model_list"].append({"model_name": "relayed", "litellm_params": relayed})
    (folder / "litellm.yaml").write_text(json.dumps(config, ensure_ascii=False), "utf-8")
    command = [program, "--config", folder / "litellm.yaml", "--host", "127.0.0.1"]
    command += ["--port", peer.root.rsplit(":", 1)[1], "--telemetry", "False"]
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "*"}
    with running(command, peer.root, "/health/liveliness", folder / "litellm.log", env):
        yield peer


@pytest.fixture(scope="session")
def llama(folder: Path) -> Iterator[Peer]:
    """llama.cpp with a model of 135 million parameters, which has no tool sense. One thread: several would wait for each other."""
    peer = Peer(f"http://127.0.0.1:{free_port()}", "smollm2", "peers-key")
    program = installed(build.LLAMA, "llama-server")
    (weights,) = build.folder_of(build.MODEL).rglob("SmolLM2*.gguf")
    command = [program, "--model", weights, "--alias", "smollm2", "--jinja", "--api-key", "peers-key"]
    command += ["--chat-template-file", program.with_name(build.TEMPLATE)]
    command += ["--host", "127.0.0.1", "--port", peer.root.rsplit(":", 1)[1]]
    command += ["--ctx-size", "2048", "--parallel", "1", "--threads", "1", "--no-webui"]
    with running(command, peer.root, "/health", folder / "llama.log"):
        yield peer
