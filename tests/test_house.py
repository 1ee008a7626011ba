"""The house rules that no linter knows. Import borders are import-linter's, style is ruff's, types are mypy's."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import glassloop

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "glassloop"
PURE = (PACKAGE / "core", PACKAGE / "wire")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

MAX_LINES = 400

# Written in pieces, so that this file does not break its own rule.
REGISTRIES = [
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
    )
]
MACHINE_PATHS = [
    "/".join(("", *pieces))
    for pieces in (
        ("work", "main"),
        ("work", "shared"),
        ("work", ".library"),
        ("root", ".pyenv"),
        ("opt", "wheels"),
    )
]

RUNS_CODE = {"eval", "exec", "__import__"}
UNPICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
READS_THE_CLOCK = {"now", "utcnow", "today"}
SLOW_TO_LOAD = {"asyncio", "ssl", "sqlite3", "http", "email", "inspect"}


@cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path, module in modules().items() for node in ast.walk(module)]


def places(rule: Callable[[ast.AST], object], folders: tuple[Path, ...] = (PACKAGE,)) -> list[str]:
    """Where in these folders' source the rule holds."""
    inside = {path for path in modules() if any(path.is_relative_to(folder) for folder in folders)}
    return [f"{short(path)}:{node.lineno}" for path, node in nodes() if path in inside and rule(node)]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def texts_of_all_project_files() -> dict[str, str]:
    """What is, or would be, committed. A copy without its .git is walked instead, caches left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        folders = (".ci", "bench", "docs", "examples", "src", "tests")
        inside = [
            path
            for folder in folders
            for path in (ROOT / folder).rglob("*")
            if "__pycache__" not in path.parts
        ]
        names = [str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.*"), *inside)]
    files = {name: ROOT / name for name in names if (ROOT / name).is_file()}
    return {name: path.read_bytes().decode("utf-8", "replace") for name, path in files.items()}


def imported_by(node: ast.AST) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name.split(".")[0] for alias in names}
        case ast.ImportFrom(module=str(module)):
            return {module.split(".")[0]}
    return set()


def called_name(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return None


def called_method(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return None


def bare_name(requirement: str) -> str:
    """The package that a requirement or a lock entry is about, in the spelling that compares."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def test_a_source_file_can_be_read_at_one_sitting():
    lengths = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_every_module_opens_by_saying_what_lives_in_it():
    assert [short(path) for path, module in modules().items() if not ast.get_docstring(module)] == []


def test_every_folder_with_code_is_a_package():
    folders = {path.parent for path in modules()}
    assert [short(folder) for folder in sorted(folders) if folder / "__init__.py" not in modules()] == []


def test_no_source_runs_text_as_code_or_unpickles():
    assert places(lambda node: called_name(node) in RUNS_CODE) == []
    assert places(lambda node: imported_by(node) & UNPICKLES) == []


def test_the_pure_floors_never_wait_read_no_clock_and_open_no_file():
    assert places(lambda node: isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)), PURE) == []
    assert places(lambda node: called_method(node) in READS_THE_CLOCK, PURE) == []
    assert places(lambda node: called_name(node) in {"open", "print", "input"}, PURE) == []


def test_no_unfinished_business_is_left_in_the_source():
    unfinished = re.compile(r"\b(TODO|FIXME|HACK)\b")
    assert [short(path) for path in modules() if unfinished.search(path.read_text(encoding="utf-8"))] == []


def test_no_file_names_a_package_registry_or_a_path_of_one_machine():
    forbidden = re.compile("|".join(map(re.escape, REGISTRIES + MACHINE_PATHS)))
    found = {name: forbidden.findall(text) for name, text in texts_of_all_project_files().items()}
    assert {name: places for name, places in found.items() if places} == {}


def test_importing_glassloop_loads_nothing_from_outside_and_nothing_slow():
    code = "import sys; before = set(sys.modules); import glassloop; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded - sys.stdlib_module_names == {"glassloop"}
    assert loaded & SLOW_TO_LOAD == set()


def test_every_public_name_is_really_there():
    assert [name for name in glassloop.__all__ if not hasattr(glassloop, name)] == []


def test_the_installed_version_is_the_one_that_the_package_says():
    assert importlib.metadata.version("glassloop") == glassloop.__version__


def test_the_lock_pins_every_dependency_with_its_hashes():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"^(?=\w)", lock, flags=re.MULTILINE) if not entry.startswith("#")]
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    wanted = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    assert set(map(bare_name, wanted)) - set(map(bare_name, entries)) == set()


def test_every_dependency_is_accounted_for_in_the_decisions():
    decisions = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    needed = map(bare_name, PROJECT["project"]["dependencies"])
    assert [name for name in needed if f"`{name}`" not in decisions] == []
