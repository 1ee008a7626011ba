"""Tools by name: from files, modules and the ready-made ones; every way in which that goes wrong is one message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glassloop.core.errors import ConfigError, ToolDefinitionError
from glassloop.tools.loading import load_tools, look_up

MARKED = '''
from __future__ import annotations
import dataclasses
from glassloop import tool
import neighbour

@dataclasses.dataclass
class Place:
    city: str

@tool(effect="read")
def get_weather(place: Place) -> str:
    """Current weather. Use it for weather."""
    return neighbour.SKY + place.city

@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

def documented_helper(a: int) -> int:
    """Help the others."""
    return a
'''
UNMARKED = '''
from os.path import join

def search(query: str) -> str:
    """Search."""
    return query

def _private(query: str) -> str:
    """Hidden."""
    return query

def undocumented(query):
    return query
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("SKY = 'sunny '\n")
    path = tmp_path / "my tools.py"
    path.write_text(MARKED, encoding="utf-8")
    return path


def test_a_file_gives_what_is_marked_and_it_is_known_to_come_from_a_file(file: Path) -> None:
    path_before = list(sys.path)
    tools = load_tools(str(file))
    assert [(each.name, each.effect, each.origin) for each in tools] == [
        ("get_weather", "read", "file"),
        ("add", "once", "file"),
    ]
    assert tools[0].function(**tools[0].bind({"place": {"city": "Oslo"}})) == "sunny Oslo"
    assert sys.path == path_before


def test_a_file_without_marks_gives_its_public_documented_functions(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(UNMARKED)
    assert [each.name for each in load_tools(str(path))] == ["search"]


def test_one_tool_of_a_file_can_be_named(file: Path) -> None:
    assert [each.name for each in load_tools(f"{file}:add")] == ["add"]
    assert [each.name for each in load_tools(f"{file}:documented_helper")] == ["documented_helper"]


def test_a_module_is_found_beside_the_working_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "tools_beside_me.py").write_text(UNMARKED)
    monkeypatch.chdir(file.parent)
    assert [each.name for each in load_tools("tools_beside_me:search")] == ["search"]


def test_ready_made_tools_load_by_name() -> None:
    (calculator,) = load_tools("calculator")
    assert (calculator.name, calculator.origin) == ("calculator", "builtin")


BROKEN = [
    ("x = 1\ndef f(:\n    pass\n", r"broken\.py, line 2: invalid syntax"),
    ("x = 1\n\ny = undefined\n", r"broken\.py, line 3: .*NameError"),
    ("import no_such_module_at_all\n", r"broken\.py, line 1: .*no_such_module_at_all.*Install it"),
    ("import sys\nsys.exit(3)\n", r"broken\.py, line 2: .*__main__"),
    (
        "from glassloop import tool\n@tool\ndef f(a): \n    'Do it.'\n",
        r"`f` \(.*broken\.py:2\): `a` has no type",
    ),
    ("\0", r"broken\.py"),
]


@pytest.mark.parametrize(("code", "words"), BROKEN, ids=range(len(BROKEN)))
def test_a_file_that_does_not_load_is_told_with_its_line_and_what_to_do(
    tmp_path: Path, code: str, words: str
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    modules_before = set(sys.modules)
    with pytest.raises(ToolDefinitionError, match=words):
        load_tools(str(path))
    assert not [name for name in set(sys.modules) - modules_before if "broken" in name]


def test_a_file_in_another_encoding_is_told(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(b"x = '\xff'\n")
    with pytest.raises(ToolDefinitionError, match=r"broken\.py"):
        load_tools(str(path))


def test_what_is_not_there_is_a_config_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    for spec, words in [
        (str(tmp_path / "none.py"), "does not exist"),
        (f"{tmp_path}/", "is a folder"),
        (str(empty), "has no tools"),
        (f"{empty}:search", "has no tool `search`"),
        ("no_such_tool", "no ready-made tool"),
    ]:
        with pytest.raises(ConfigError, match=words):
            load_tools(spec)


def test_a_module_that_is_not_there_is_told() -> None:
    with pytest.raises(ToolDefinitionError, match="no_such_module_anywhere"):
        load_tools("no_such_module_anywhere:search")


def test_public_functions_that_are_no_tools_are_named_with_the_reason(file: Path, tmp_path: Path) -> None:
    assert look_up(str(file)).skipped == {
        "documented_helper": "it is not marked with @tool, as others here are"
    }
    (tmp_path / "plain.py").write_text(UNMARKED)
    assert look_up(str(tmp_path / "plain.py")).skipped == {"undocumented": "it has no docstring"}
    assert look_up(f"{file}:add").skipped == look_up("basics").skipped == {}


NO_TYPES = {
    "a class of the file": (
        "class Thing: ...",
        "Thing",
        "`what: Thing` is of a type that JSON cannot carry.",
    ),
    "a function": ("from collections.abc import Callable", "Callable[[int], str]", "Callable[[int], str]`"),
}


@pytest.mark.parametrize("mark", ["", "@tool\n"], ids=["unmarked", "marked"])
@pytest.mark.parametrize("case", NO_TYPES)
def test_a_type_that_cannot_be_sent_is_named_as_the_file_names_it(
    tmp_path: Path, case: str, mark: str
) -> None:
    before, hint, words = NO_TYPES[case]
    function = f'def search(what: {hint}) -> str:\n    """Search."""\n    return ""\n'
    (tmp_path / "bad.py").write_text(f"from glassloop import tool\n{before}\n{mark}{function}")
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools(str(tmp_path / "bad.py"))
    assert words in str(caught.value)
    assert "glassloop_tools_" not in str(caught.value)
    assert "schema" not in str(caught.value)
