"""Where in an answer the next character stands: in a quotation, in a sentence, or where a call may begin."""

from __future__ import annotations

_FENCES = ("```", "~~~")
_GOES_ON = frozenset(",:;=(-–—\"'“‘«「『（，：；、")
_LONGEST_LEAD = 160


class Line:
    """Follows the text that is shown. Each character is looked at once, when somebody asks."""

    __slots__ = ("_closing", "_fenced", "_head", "_last", "_lines", "_size", "_ticks", "_unread")

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._fenced = False
        self._lines = 0  # lines with text so far
        self._size = 0
        self._head = ""  # the first three characters of this line that are no blanks
        self._last = ""  # the last one
        self._ticks = 0
        self._closing = False

    def add(self, text: str) -> None:
        self._unread.append(text)

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
        """In a code fence."""
        self._read()
        return self._fenced

    @property
    def quotes(self) -> bool:
        """In a code fence, in inline code, or in a quoted line: what stands here is shown, not meant."""
        self._read()
        inline = self._ticks % 2 == 1 and self._head not in _FENCES
        return self._fenced or inline or (self._head.startswith(">") and self._head != ">>>")

    @property
    def within_sentence(self) -> bool:
        """Behind text on the same line that has not come to an end."""
        self._read()
        return self._last.isalnum() or (self._last != "" and self._last in _GOES_ON)

    def _read(self) -> None:
        if not self._unread:
            return
        first, *others = "".join(self._unread).split("\n")
        self._unread.clear()
        self._add_to_line(first)
        for piece in others:
            self._end_line()
            self._add_to_line(piece)

    def _add_to_line(self, text: str) -> None:
        stripped = text.strip()
        if not stripped:
            return
        self._lines += not self._head
        self._size += len(stripped)
        self._last = stripped[-1]
        self._ticks += stripped.count("`")
        if len(self._head) < len(_FENCES[0]):
            self._head = (self._head + stripped[: len(_FENCES[0])])[: len(_FENCES[0])]
            if self._head in _FENCES:
                self._closing = self._fenced
                self._fenced = True

    def _end_line(self) -> None:
        opened_and_closed = self._head == _FENCES[0] and self._ticks >= 2 * len(_FENCES[0])
        if self._closing or opened_and_closed:
            self._fenced = False
        self._head = self._last = ""
        self._ticks = 0
        self._closing = False
