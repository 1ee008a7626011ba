"""Tools by name, for the terminal's `-T`: from a file, a module or the ready-made ones. Runs the file's own code."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from glassloop.core.errors import ConfigError, GlassloopError, ToolDefinitionError
from glassloop.tools.tool import Tool, as_tool

_HOW = "Give a file (tools.py), one tool of it (tools.py:search), module:name, or a ready-made tool."


@dataclass(frozen=True, slots=True)
class Loaded:
    """The tools that a name stands for. `skipped`: the public functions beside them that are none, and why."""

    tools: list[Tool]
    skipped: Mapping[str, str] = field(default_factory=dict)


def load_tools(spec: str, options: Mapping[str, str] | None = None) -> list[Tool]:
    """The tools that `spec` names; see `look_up`."""
    return look_up(spec, options).tools


def look_up(spec: str, options: Mapping[str, str] | None = None) -> Loaded:
    """The tools that `spec` names. `options` are settings of ready-made tools (`notes_folder`).

    Of a file or module: everything marked `@tool`; where nothing is marked, its public functions that
    have a docstring. Raises `ConfigError` where nothing is found, `ToolDefinitionError` where the file
    does not load; both name the file, the line where there is one, and what to do.
    """
    source, name = _split(spec)
    if _is_file(source):
        module = _module_of_file(Path(source).expanduser())
    elif name is not None:
        module = _module_by_name(source)
    else:
        from glassloop.tools import builtin

        if spec not in builtin.names() and Path(f"{spec}.py") in Path().glob("*.py"):
            raise ConfigError(f"There is no ready-made tool {spec!r}. Did you mean {spec}.py?")
        return Loaded(builtin.load(spec, options))
    found = [_named(module, name, source)] if name is not None else _candidates(module)
    skipped = {} if name is not None else _skipped(module, found)
    if not found:
        raise ConfigError(_none_in(source, skipped))
    return Loaded([replace(_tool_of(each, module), origin="file") for each in found], skipped)


def _split(spec: str) -> tuple[str, str | None]:
    """`tools.py:search` → file and name. The colon of a Windows drive is part of the path."""
    source, colon, name = spec.rpartition(":")
    if colon and source and name.isidentifier():
        return source, name
    return spec, None


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source or "\\" in source


# ── running the file ───────────────────────────────────────────────────────────────────────────────


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise ConfigError(f"The tool file {path} {kind}. {_HOW}")
    path = path.resolve()
    name = f"glassloop_tools_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise ConfigError(f"The tool file {path} is no Python file. {_HOW}")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # annotations and dataclasses of the file look their module up here
    loader = found.loader
    try:
        with _importable(path.parent), _explained(str(path), name):
            loader.exec_module(module)
    except GlassloopError:
        del sys.modules[name]
        raise
    return module


def _module_by_name(name: str) -> ModuleType:
    with _importable(Path.cwd()), _explained(name, name):
        return importlib.import_module(name)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a tool file import its neighbours. Last on the path, so that it cannot stand in for anything."""
    entry = str(folder)
    sys.path.append(entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


@contextmanager
def _explained(source: str, module: str) -> Iterator[None]:
    """Whatever goes wrong while the file runs, as one message with its line."""
    try:
        yield
    except ToolDefinitionError as error:
        raise ToolDefinitionError(_for_people(error, module)) from error
    except GlassloopError:
        raise
    except SyntaxError as error:
        place = f"{error.filename or source}, line {error.lineno}"
        raise ToolDefinitionError(
            f"{place}: {error.msg}. Correct it; `python -m py_compile` checks it."
        ) from error
    except (Exception, SystemExit) as error:
        raise ToolDefinitionError(f"{_place(error, source)}: {_reason(error)}") from error


def _place(error: BaseException, source: str) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    return f"{source}, line {frames[-1].lineno}" if frames else source


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'it ends the program when it is loaded. Put that under `if __name__ == "__main__":`.'
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        return f"{said}. Install it in the environment that Glassloop runs in, or correct the name."
    return f"it cannot be loaded ({said})."


# ── what is in it ──────────────────────────────────────────────────────────────────────────────────


def _named(module: ModuleType, name: str, source: str) -> Any:
    found = getattr(module, name, None)
    if found is None or not (isinstance(found, Tool) or callable(found)):
        there = ", ".join(_name_of(each) for each in _candidates(module)) or "none"
        raise ConfigError(f"{source} has no tool `{name}`. Its tools: {there}.")
    return found


def _tool_of(found: Any, module: ModuleType) -> Tool:
    try:
        return as_tool(found)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(_for_people(error, module.__name__)) from error


def _for_people(error: ToolDefinitionError, module: str) -> str:
    """The message with types named as the file names them, and without the words of the library underneath."""
    text, cause = str(error), error.__cause__
    if cause is not None and type(cause).__module__.startswith("pydantic"):
        text = text.replace(f" ({str(cause).strip().splitlines()[0]})", "")
    return text.replace(f"{module}.", "")


def _none_in(source: str, skipped: Mapping[str, str]) -> str:
    why = "".join(f" `{name}` is none: {reason}." for name, reason in skipped.items())
    return f"{source} has no tools. Put `@tool` above a function that has a docstring.{why}"


def _candidates(module: ModuleType) -> list[Any]:
    members = list(vars(module).values())
    marked = list(dict.fromkeys(each for each in members if isinstance(each, Tool)))
    return marked or [each for each in _public_functions(module) if inspect.getdoc(each)]


def _skipped(module: ModuleType, found: list[Any]) -> dict[str, str]:
    marked = any(isinstance(each, Tool) for each in found)
    reason = "it is not marked with @tool, as others here are" if marked else "it has no docstring"
    return {each.__name__: reason for each in _public_functions(module) if each not in found}


def _public_functions(module: ModuleType) -> list[Any]:
    """Defined here, not imported; not private."""
    return [
        each
        for each in vars(module).values()
        if inspect.isfunction(each)
        and each.__module__ == module.__name__
        and not each.__name__.startswith("_")
    ]


def _name_of(found: Any) -> str:
    return str(found.name if isinstance(found, Tool) else found.__name__)
