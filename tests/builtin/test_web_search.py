"""The web_search tool: what it makes of results, and what the real library says without a network."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

import pytest

from glassloop.tools import builtin
from glassloop.tools.builtin.web_search import MAX_RESULTS, Engines, Found, web_search_tool

FOUND = [
    Found("One <b>title</b>", "https://a.example/1", "An excerpt\n over lines"),
    Found("", "http://b.example/"),
    Found("bad", "javascript:alert(1)", "x"),
    Found("local", "file:///etc/passwd", "x"),
    Found("中文\u202e\x1b[2J", "https://c.example/中", "摘要"),
]


def found_for(query: str, limit: int) -> Sequence[Found]:
    return FOUND if query == "good words" else []


def test_results_are_a_numbered_list_of_titles_addresses_and_excerpts() -> None:
    assert web_search_tool(found_for).function("  good\nwords ") == (
        "1. One <b>title</b>\n   https://a.example/1\n   An excerpt over lines\n\n"
        "2. (without a title)\n   http://b.example/\n\n"
        "3. 中文\\u202e\\x1b[2J\n   https://c.example/中\n   摘要"
    )


def test_finding_nothing_is_no_error() -> None:
    assert web_search_tool(found_for).function("x").startswith("Nothing was found for 'x'. Try other words")


@pytest.mark.parametrize(("asked", "given"), [(3, 3), (0, 1), (-5, 1), (1_000, MAX_RESULTS)])
def test_the_limit_is_kept_and_passed_on(asked: int, given: int) -> None:
    limits: list[int] = []

    def engine(query: str, limit: int) -> Sequence[Found]:
        limits.append(limit)
        return [Found(f"t{number}", "https://a.example/") for number in range(100)]

    said = web_search_tool(engine).function("x", limit=asked)
    assert (limits, said.count("https://")) == ([given], given)


@pytest.mark.parametrize("query", ["", "  \n ", "x" * 401])
def test_a_query_that_is_none_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="give 1 to 400"):
        web_search_tool(found_for).function(query)


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)  # importing it then fails as if it were not there
    with pytest.raises(RuntimeError, match=r'pip install "glassloop\[web\]"'):
        builtin.load("web_search")[0].function("x")


@pytest.mark.parametrize("query", ["glassloop", "天气 北京", "天気", "날씨", "погода"])
def test_where_no_engine_can_be_reached_the_error_says_so(query: str) -> None:
    """The real library, through a proxy that is not there: nothing leaves this machine."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=r"no search engine (could be asked|answered in time)"):
            Engines(proxy)(query, 3)
