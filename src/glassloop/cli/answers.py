"""What may be answered when a call asks to run, what an answer means, and what it allows from then on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from glassloop.core.entries import ToolResult
from glassloop.core.errors import ConfigError
from glassloop.core.tools import Decision, Verdict
from glassloop.core.visible import exact

if TYPE_CHECKING:
    from glassloop.tools.toolbox import Toolbox


class Answer(Enum):
    """An answer that is a word; anything else that was typed says why the call may not run."""

    ONCE = "yes, once"
    THIS = "yes, to exactly this call, while I am here"
    SESSION = "yes, to `{rule}`, while I am here"
    FOUND = "yes, to every page that web_search found, while I am here"
    ALWAYS = "the same, always in this folder (kept in your own settings)"
    NO = "no; or say why not"
    VIEW = "show all of it"


_WORDS: dict[str, Answer] = {
    "y": Answer.ONCE,
    "yes": Answer.ONCE,
    "once": Answer.ONCE,
    "t": Answer.THIS,
    "this": Answer.THIS,
    "s": Answer.SESSION,
    "session": Answer.SESSION,
    "f": Answer.FOUND,
    "found": Answer.FOUND,
    "a": Answer.ALWAYS,
    "always": Answer.ALWAYS,
    "n": Answer.NO,
    "no": Answer.NO,
    "v": Answer.VIEW,
    "view": Answer.VIEW,
}
_NOT_CLEAR = frozenset(("ok", "okay", "sure", "yep", "yeah", "yes", "go", "好", "好的", "可以", "是的"))
"""Neither one of the words nor a reason why not: the question is put again."""

_KEYS = {answer: key for key, answer in reversed(_WORDS.items())}
_ALLOWING = (Answer.ONCE, Answer.THIS, Answer.SESSION, Answer.FOUND, Answer.ALWAYS)


@dataclass(frozen=True, slots=True)
class Offers:
    """What may be allowed beyond this one call. `rule`: for its like; `keeps`: a rule can be kept for good.

    `despite`: the rule would hold although words from outside were read, and says so. `found`: the call reads a page
    that a search found.
    """

    this: bool = False
    rule: str = ""
    keeps: bool = False
    despite: bool = False
    found: bool = False

    def __contains__(self, answer: Answer) -> bool:
        match answer:
            case Answer.THIS:
                return self.this
            case Answer.SESSION:
                return bool(self.rule)
            case Answer.FOUND:
                return self.found
            case Answer.ALWAYS:
                return bool(self.rule) and self.keeps
        return True


def choices(offers: Offers) -> list[str]:
    """What may be answered, a line each."""
    also = ", whatever is read" if offers.despite else ""
    return [
        f"  {_KEYS[one]}  {one.value.format(rule=exact(offers.rule))}{also if one is Answer.SESSION else ''}"
        for one in Answer
        if one in offers and one is not Answer.VIEW
    ]


def answer_from(said: str, offers: Offers) -> Answer | str | None:
    """What was typed: a word, why not, or None for what is neither. Only a clear yes allows."""
    text = said.strip()
    answer = _WORDS.get(text.lower())
    if answer is not None:
        return answer if answer in offers else None
    return text if len(text) > 1 and text.lower().rstrip(".!。！") not in _NOT_CLEAR else None


def decision_from(answer: Answer | str, verdict: Verdict) -> Decision:
    """The decision, with what the model is told of a no."""
    if answer in _ALLOWING:
        return Decision(verdict.call.id, True, by="the terminal")
    reason = "the user said no" if isinstance(answer, Answer) else f"the user said: {answer}"
    return Decision(verdict.call.id, False, reason, by="the terminal")


class Standing:
    """What was allowed while the program runs. Words from outside end it for tools that reach out, save for hosts
    of tools that only read, where a person has said so. What the user's own `ask` rules name is asked about each time,
    whatever else was allowed, save for exactly the same call.

    `toolbox` knows the tools, rules begin at `folder`, and `keep` keeps a rule for good.
    """

    def __init__(
        self,
        toolbox: Toolbox | None = None,
        folder: Path | None = None,
        keep: Callable[[str], None] | None = None,
        ask: Sequence[str] = (),
    ) -> None:
        self._toolbox = toolbox
        self._folder = folder or Path()
        self._keep = keep
        self._ask = ask
        self._calls: set[str] = set()
        self._rules: list[str] = []
        self._despite: list[str] = []
        self._pages: set[str] = set()
        self._reads_pages = False

    def in_place_of(self, other: Standing) -> Standing:
        """This one, with what was allowed before: the same conversation has another toolbox now."""
        self._calls, self._rules, self._despite = other._calls, other._rules, other._despite
        self._pages, self._reads_pages = other._pages, other._reads_pages
        return self

    def heard(self, result: ToolResult) -> None:
        """A tool said this. The pages that a search found are remembered: which of them is read tells nobody anything
        that they did not say themselves.
        """
        if result.name == _SEARCH and self._is_builtin(_SEARCH):
            self._pages |= {_page(url) for url in _FOUND.findall(result.text)}

    def covers(self, verdict: Verdict) -> bool:
        """Whether the call was allowed before, itself or by a rule."""
        match self._asked_in(verdict):
            case "clean":
                known = _identity(verdict) in self._calls
                return known or self._by_rule([*self._rules, *self._despite], verdict)
            case "outside":
                if self._reads_pages and self._is_found(verdict):
                    return not self._is_to_ask(verdict)
                return self._by_rule(self._despite, verdict)
        return False

    def offers(self, verdict: Verdict) -> Offers:
        """What may be allowed with this call."""
        from glassloop.tools.rules import suggested

        tool = self._toolbox.tool(verdict.call.name) if self._toolbox else None
        where = self._asked_in(verdict)
        if tool is None or where == "unknown":
            return Offers()
        rule = (
            ""
            if self._is_to_ask(verdict)
            else suggested(tool, verdict.arguments, self._folder.resolve()) or ""
        )
        if where == "outside":
            only_reads = tool.effect == "read" and set(tool.needs) == {"network"}
            found = self._is_found(verdict) and not self._is_to_ask(verdict)
            return Offers(rule=rule, despite=bool(rule), found=found) if only_reads else Offers()
        return Offers(True, rule, self._keep is not None)

    def remember(self, verdict: Verdict, answer: Answer) -> str:
        """Allow what the answer says. Gives why it could not be kept for good, "" if it was or need not be."""
        offers = self.offers(verdict)
        if answer is Answer.THIS:
            self._calls.add(_identity(verdict))
        elif answer is Answer.FOUND:
            self._reads_pages = True
        elif answer in (Answer.SESSION, Answer.ALWAYS):
            (self._despite if offers.despite else self._rules).append(offers.rule)
        if answer is Answer.ALWAYS and self._keep is not None:
            try:
                self._keep(offers.rule)
            except (OSError, ConfigError) as error:
                return f"It could not be kept for good: {error}."
        return ""

    def _asked_in(self, verdict: Verdict) -> Literal["clean", "outside", "unknown"]:
        return self._toolbox.asked_in(verdict) if self._toolbox else "unknown"

    def _by_rule(self, rules: Sequence[str], verdict: Verdict) -> bool:
        from glassloop.tools.rules import covered

        tool = self._toolbox.tool(verdict.call.name) if self._toolbox else None
        if tool is None or self._is_to_ask(verdict):
            return False
        return covered(rules, tool, verdict.arguments, self._folder)

    def _is_found(self, verdict: Verdict) -> bool:
        url = verdict.arguments.get("url")
        is_fetch = verdict.call.name == _FETCH and self._is_builtin(_FETCH)
        return is_fetch and isinstance(url, str) and _page(url) in self._pages

    def _is_builtin(self, name: str) -> bool:
        tool = self._toolbox.tool(name) if self._toolbox else None
        return tool is not None and tool.origin == "builtin"

    def _is_to_ask(self, verdict: Verdict) -> bool:
        from glassloop.tools.rules import concerned

        tool = self._toolbox.tool(verdict.call.name) if self._toolbox else None
        return tool is not None and concerned(self._ask, tool, verdict.arguments, self._folder)


_SEARCH, _FETCH = "web_search", "web_fetch"
_FOUND = re.compile(r"^ {3}(https?://\S+)$", re.MULTILINE)
"""A page in the list of results."""


def _page(url: str) -> str:
    return url.strip().partition("#")[0].rstrip("/")


def _identity(verdict: Verdict) -> str:
    """The call itself: its tool as it is defined, and all its arguments."""
    return json.dumps([verdict.call.name, verdict.tool_hash, verdict.arguments], sort_keys=True)
