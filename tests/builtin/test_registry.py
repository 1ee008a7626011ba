"""The ready-made tools by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassloop.core.errors import ConfigError
from glassloop.tools import builtin


@pytest.fixture
def notes(tmp_path: Path) -> dict[str, str]:
    return {"notes_folder": str(tmp_path)}


@pytest.mark.parametrize("name", builtin.names())
def test_every_name_loads_tools_that_say_when_to_use_them_and_what_each_parameter_is(
    name: str, notes: dict[str, str]
) -> None:
    for tool in builtin.load(name, notes):
        assert tool.origin == "builtin"
        assert "Use " in tool.description
        assert all(schema.get("description") for schema in tool.parameters["properties"].values())


@pytest.mark.parametrize("name", ["basics", "search_notes", "sql"])
def test_what_is_loaded_to_look_things_up_only_reads(name: str, notes: dict[str, str]) -> None:
    assert {tool.effect for tool in builtin.load(name, notes)} == {"read"}


@pytest.mark.parametrize("name", builtin.TOOLS)
def test_each_tool_is_loaded_alone_under_its_own_name(name: str, notes: dict[str, str]) -> None:
    assert [tool.name for tool in builtin.load(name, notes)] == [name]


def test_a_set_has_the_tools_that_it_names_and_basics_those_that_need_no_folder() -> None:
    for name, tools in builtin.SETS.items():
        assert tuple(tool.name for tool in builtin.load(name)) == tools
    assert not set(builtin.SETS) & set(builtin.TOOLS)
    assert builtin.SETS["basics"] == ("calculator", "current_time", "weather")


def test_an_unknown_name_is_refused_with_the_nearest_and_all() -> None:
    with pytest.raises(
        ConfigError, match=r"'calculater'. Did you mean calculator\? There are: calculator, current_time"
    ):
        builtin.load("calculater")


def test_a_name_never_becomes_a_module() -> None:
    with pytest.raises(ConfigError, match="There is no ready-made tool 'os:system'"):
        builtin.load("os:system")


def test_notes_are_looked_for_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"notes does not exist\. Make it, or set notes_folder"):
        builtin.load("search_notes")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("hello")
    assert "a.md:1: hello" in builtin.load("search_notes")[0].function("hello")
