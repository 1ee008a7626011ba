"""The environments of the sides: ours is the project's `.venv`; each peer has one of its own under `bench/.envs`.

`python bench/envs.py NAME…` builds them from `bench/requirements/NAME.txt`; what is there already is left alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVS = HERE / ".envs"
OURS = HERE.parent / ".venv" / "bin" / "python"
IN_OURS = ("floor", "glassloop")


def python_of(name: str) -> Path:
    return OURS if name in IN_OURS else ENVS / name / "bin" / "python"


def build(name: str) -> None:
    """Make a side's environment if it is not there, or not of these requirements."""
    if name in IN_OURS:
        return
    requirements = HERE / "requirements" / f"{name}.txt"
    folder, stamp = ENVS / name, ENVS / name / "installed.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return
    print(f"Building the environment of {name}", file=sys.stderr)
    ENVS.mkdir(exist_ok=True)
    (ENVS / ".gitignore").write_text("*\n")
    uv = shutil.which("uv") or shutil.which("uv", path=str(OURS.parent))
    python = python_of(name)
    if uv:
        _run(uv, "venv", "--quiet", "--clear", "--python", str(OURS), str(folder))
        _run(uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(requirements))
    else:
        _run(str(OURS), "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements))
    stamp.write_text(requirements.read_text())


def versions(name: str) -> dict[str, str]:
    """The packages that decide a side's speed, as installed."""
    wanted = (
        "aiohttp",
        "httpx",
        "httpx2",
        "openai",
        "openai-agents",
        "pydantic",
        "pydantic-ai-slim",
        "glassloop",
    )
    code = (
        "import importlib.metadata as m, json, sys\n"
        "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))"
    )
    out = subprocess.run([python_of(name), "-c", code], capture_output=True, text=True, check=True).stdout
    installed = json.loads(out)
    return {package: installed[package] for package in wanted if package in installed}


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    for each in sys.argv[1:] or [path.stem for path in (HERE / "requirements").glob("*.txt")]:
        build(each)
