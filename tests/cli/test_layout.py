"""What is laid out for a terminal's width: tables, hanging lines, help pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import pytest

from glassloop.cli.app import app
from glassloop.cli.safe_text import laid_out, width_of
from glassloop.cli.tables import print_table

ID = "551e84856f8e"
SAID = "北京市朝阳区三里屯：晴れ 20 °C ☀️，今天天气很好，适合出门散步，但是请注意防晒。"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("NO_COLOR", "1")

    def printed(columns: int, heads: list[str], *rows: list[str]) -> list[str]:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table(heads, rows)
        return capsys.readouterr().out.splitlines()

    return printed


@pytest.mark.parametrize("columns", [30, 50, 80, 120])
def test_a_table_fits_and_breaks_no_id(table, columns: int) -> None:  # type: ignore[no-untyped-def]
    lines = table(columns, ["session", "when", "who", "what"], [ID, "2026-11-30 07:28", "the model", SAID])
    assert all(width_of(line) <= columns for line in lines)
    assert sum(ID in line for line in lines) == 1
    assert not any(line.lstrip().startswith(("，", "。")) for line in lines)
    assert "".join("".join(lines).split()).endswith("防晒。")


def test_columns_begin_below_their_heads(table) -> None:  # type: ignore[no-untyped-def]
    lines = table(60, ["tool", "what"], ["天気", "asks for the weather"], ["calculator", "計算"])
    assert lines == [
        "tool         what",
        "─────────────────────────────────",
        "天気         asks for the weather",
        "calculator   計算",
    ]


def test_a_long_head_does_not_widen_a_column_of_short_cells(table) -> None:  # type: ignore[no-untyped-def]
    names = ["groq:llama-3.3-70b-versatile", "deepseek:deepseek-chat", "ollama:qwen3-coder:480b-cloud"]
    lines = table(80, ["probe", *names], ["reachable", "ok", "failed", "mended"])
    assert all(width_of(line) <= 80 for line in lines)
    assert lines[-1].split() == ["reachable", "ok", "failed", "mended"]


def test_a_table_without_rows_is_not_printed(table) -> None:  # type: ignore[no-untyped-def]
    assert table(80, ["server", "state"]) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("! not trusted yet, left out", ["! not trusted", "  yet, left out"]),
        ("  y  yes, to this one", ["  y  yes, to", "     this one"]),
        ("/tool   what may be called", ["/tool   what may", "        be", "        called"]),
        ("    there is something", ["    there is", "    something"]),
        ("plain words are not indented", ["plain words are", "not indented"]),
        ("short", ["short"]),
        ("! one\n! and more than one", ["! one", "! and more than", "  one"]),
        ("a-label-too-long-to-hang-below  x", ["a-label-too-long", "-to-hang-below x"]),
    ],
)
def test_lines_hang_below_a_mark_or_a_label(text: str, lines: list[str]) -> None:
    assert laid_out(text, 16) == lines


def commands(of: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, of
    if isinstance(of, click.Group):
        for name in of.list_commands(click.Context(of)):
            one = of.get_command(click.Context(of), name)
            assert one is not None
            yield from commands(one, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), list(commands(app, "glassloop")))
def test_a_help_page_fits_and_leaves_no_sentence_unfinished(path: str, command: click.Command) -> None:
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=80))
    assert [line for line in shown.splitlines() if width_of(line) > 80] == []
    cut = [line for line in shown.splitlines() if line.endswith("...") and not line.startswith("Usage:")]
    assert cut == []
    assert "RANGE" not in shown
    assert "INTEGER" not in shown
