"""Where in an answer the next character stands: in a quotation, in a sentence, or where a call may begin."""

from __future__ import annotations

_FENCES = ("```", "~~~")
_GOES_ON = frozenset(",:;=(-–—\"'“‘«「『（，：；、")
_LONGEST_LEAD = 160
_LONGEST_FENCE = 12


class Line:
    """Follows `shown`, the pieces of text that are shown. Each character is looked at once, when somebody asks."""

    __slots__ = ("_fence", "_head", "_last", "_lines", "_read_to", "_shown", "_size", "_spaced", "_ticks")

    def __init__(self, shown: list[str]) -> None:
        self._shown = shown
        self._read_to = 0
        self._fence = ""  # the marks that opened the code fence in which the text stands
        self._lines = 0  # lines with text so far
        self._size = 0
        self._head = ""  # the first few characters of this line that are no blanks
        self._last = ""  # the last one
        self._spaced = False
        self._ticks = 0

    def end_lead(self) -> None:
        """What was said so far is more than a short line before a call."""
        self._lines += 2

    @property
    def begins(self) -> bool:
        """Nothing but blanks was said yet."""
        self._read()
        return self._lines == 0

    @property
    def blank(self) -> bool:
        """Nothing stands on this line yet."""
        self._read()
        return not self._head

    @property
    def leads(self) -> bool:
        """Nothing was said yet, or one short line."""
        self._read()
        return self._lines == 0 or (self._lines == 1 and self.blank and self._size <= _LONGEST_LEAD)

    @property
    def fenced(self) -> bool:
        """In a code fence, or on the line that opens or closes one."""
        self._read()
        return bool(self._fence or self._mark())

    @property
    def quotes(self) -> bool:
        """In a code fence, in inline code, in a table or in a quoted line: what stands here is shown, not meant."""
        if self.fenced:
            return True
        quoted = self._head.startswith(">") and not self._head.startswith(">>>")
        return self._ticks % 2 == 1 or quoted or self._head.startswith("|")

    @property
    def within_sentence(self) -> bool:
        """Behind text on the same line that has not come to an end."""
        self._read()
        return self._last.isalnum() or (self._last != "" and self._last in _GOES_ON)

    @property
    def spaced(self) -> bool:
        """Behind a blank."""
        self._read()
        return self._spaced

    def _read(self) -> None:
        if self._read_to == len(self._shown):
            return
        text = "".join(self._shown[self._read_to :])
        self._read_to = len(self._shown)
        first, *others = text.split("\n")
        if self._lines > 1 and not any(fence in text for fence in _FENCES):
            others = others[-1:]  # what stands on the lines between changes nothing
        self._add_to_line(first)
        for piece in others:
            self._end_line()
            self._add_to_line(piece)

    def _add_to_line(self, text: str) -> None:
        stripped = text.strip()
        self._spaced = text[-1:].isspace() if text else self._spaced
        if not stripped:
            return
        self._lines += not self._head
        self._size += len(stripped)
        self._last = stripped[-1]
        self._ticks += stripped.count("`")
        if len(self._head) < _LONGEST_FENCE:
            self._head = (self._head + stripped[:_LONGEST_FENCE])[:_LONGEST_FENCE]

    def _mark(self) -> str:
        """The marks of a code fence that this line begins with."""
        if not self._head.startswith(_FENCES):
            return ""
        return self._head[: len(self._head) - len(self._head.lstrip(self._head[0]))]

    def _end_line(self) -> None:
        mark = self._mark()
        if self._fence:  # a fence is closed by as many of its own marks, so that it can show a smaller one
            self._fence = "" if mark.startswith(self._fence) else self._fence
        elif not (mark.startswith(_FENCES[0]) and self._ticks >= 2 * len(mark)):
            self._fence = mark
        self._head = self._last = ""
        self._ticks = 0
