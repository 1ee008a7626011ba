"""The `web_search` tool: what search engines find, as a numbered list. The engines are asked by the `ddgs` library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glassloop.core.visible import one_line
from glassloop.tools.builtin.web_options import proxy_from
from glassloop.tools.tool import Need, Tool, tool

MAX_RESULTS = 20
MAX_QUERY = 400
_ENGINE_SECONDS = 15
_MAX_TITLE = 200
_MAX_SNIPPET = 500
_MAX_URL = 2_000
_NEEDS: tuple[Need, ...] = ("network",)


@dataclass(frozen=True, slots=True)
class Found:
    """One result, in the words of an engine."""

    title: str
    url: str
    snippet: str = ""


Search = Callable[[str, int], Sequence[Found]]
"""At most so many results for a query, best first; empty if there are none. It may take its time: it runs in a thread.
Raises `ConnectionError` where no engine can be asked."""

# Where the query's script says which country's results are meant; the first that occurs.
_REGIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("[\u3040-\u30ff]"), "jp-jp"),
    (re.compile("[\uac00-\ud7af]"), "kr-kr"),
    (re.compile("[\u4e00-\u9fff]"), "cn-zh"),
    (re.compile("[\u0400-\u04ff]"), "ru-ru"),
)
_ANYWHERE = "us-en"
_NOTHING = "No results found"
"""How the library begins to say that engines answered and had nothing."""


def web_search_tool(search: Search | None = None) -> Tool:
    """The `web_search` tool. `search` asks the engines; by default several of them through `ddgs`."""
    ask = search or Engines()

    @tool(effect="read", timeout=60, untrusted=True, needs=_NEEDS)
    def web_search(query: str, limit: int = 8) -> str:
        """Search the web. Use it to find pages on anything that you do not know or that may have changed; then read
        the best of them with web_fetch, because the excerpts here are short and may be out of date.

        Args:
            query: A few words, as for any search engine, in the language that the pages are in.
            limit: How many results, at most 20.
        """
        query = " ".join(query.split())
        if not query or len(query) > MAX_QUERY:
            raise ValueError(f"the query has {len(query)} characters; give 1 to {MAX_QUERY}")
        limit = min(max(limit, 1), MAX_RESULTS)
        return _listed(query, [one for one in ask(query, limit) if _is_web(one.url)][:limit])

    return web_search


def from_options(options: Mapping[str, str]) -> Tool:
    """The tool; `web_proxy` is used for the engines too."""
    return web_search_tool(Engines(proxy_from(options)))


@dataclass(frozen=True, slots=True)
class Engines:
    """Several public search engines, by the `ddgs` library. It has an HTTP client of its own; `proxy` is for that."""

    proxy: str | None = None

    def __call__(self, query: str, limit: int) -> Sequence[Found]:
        """Raises `ConnectionError`, and `RuntimeError` if the library is not installed."""
        try:
            from ddgs import DDGS
            from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
        except ImportError as error:
            raise RuntimeError(
                'web_search needs the library ddgs; tell the user to install it: pip install "glassloop[web]"'
            ) from error
        region = next((region for script, region in _REGIONS if script.search(query)), _ANYWHERE)
        try:
            rows = DDGS(proxy=self.proxy, timeout=_ENGINE_SECONDS).text(
                query, region=region, max_results=limit
            )
        except TimeoutException as error:
            raise ConnectionError("no search engine answered in time; try again later") from error
        except RatelimitException as error:
            raise ConnectionError("the search engines want fewer requests; try again in a minute") from error
        except DDGSException as error:
            if str(error).startswith(_NOTHING):
                return ()
            raise ConnectionError(
                f"no search engine could be asked: {one_line(str(error))[:300]}; check the network"
            ) from error
        return [Found(*(str(row.get(key) or "") for key in ("title", "href", "body"))) for row in rows]


def _is_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://")) and len(url) <= _MAX_URL


def _listed(query: str, found: Sequence[Found]) -> str:
    if not found:
        return f"Nothing was found for {query!r}. Try other words, or fewer."
    return "\n\n".join(f"{number}. {_entry(one)}" for number, one in enumerate(found, 1))


def _entry(one: Found) -> str:
    lines = (
        one_line(one.title)[:_MAX_TITLE] or "(without a title)",
        one_line(one.url),
        one_line(one.snippet)[:_MAX_SNIPPET],
    )
    return "\n   ".join(filter(None, lines))
