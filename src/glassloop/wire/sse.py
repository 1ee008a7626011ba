"""Bytes → server-sent events, as real servers write them. What an event's data means is `stream`'s business.

By the specification (WHATWG HTML, "Server-sent events") an event ends at a blank line. Real endpoints also
leave the blank line out, glue events together, send bare JSON lines, or mix line endings; all of these
come out as the same events. Work is linear in the bytes, and no line is too long.
"""

from __future__ import annotations

ServerEvent = tuple[str, str]
"""One event: the value of its `event:` field ("" if it had none) and its data lines, joined by newlines."""

_ORDINARY = ("data: {", "data: [DONE]")
_CLOSERS = {"{": "}", "[": "]"}


class SSEDecoder:
    """Turns reads of any size into events. Comments, `id:` and `retry:` are dropped; invalid UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []  # pieces of the last line, which has no line ending yet
        self._ended_in_cr = False
        self._at_start = True
        self._name = ""
        self._data: list[str] = []
        self._bare: list[str] = []  # lines of a JSON object that came without "data:"

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._unfinished.append(data)
            return []
        lines = b"".join((*self._unfinished, data[:end]))  # whole ones: no character is cut
        self._unfinished = [data[end:]] if end < len(data) else []
        return self._read(lines.decode("utf-8", "replace"))

    def finish(self) -> list[ServerEvent]:
        """The events that only the end of the stream completes."""
        if not (self._unfinished or self._data or self._bare):  # as nearly always
            return []
        rest = b"".join(self._unfinished)
        self._unfinished = []
        events = self._read(rest.decode("utf-8", "replace") + "\n")
        self._dispatch(events)
        return events

    def _read(self, text: str) -> list[ServerEvent]:
        """The events that these whole lines complete."""
        events: list[ServerEvent] = []
        *blocks, rest = self._with_plain_line_endings(text).split("\n\n")
        for block in blocks:
            # The ordinary event is one data line; everything else is read line by line.
            if block.startswith(_ORDINARY) and "\n" not in block and not self._data and not self._bare:
                events.append((self._name, block[6:]))
                self._name = ""
                continue
            for line in block.split("\n"):
                self._line(line, events)
            self._dispatch(events)
        for line in rest.split("\n")[:-1]:
            self._line(line, events)
        return events

    def _with_plain_line_endings(self, text: str) -> str:
        if self._at_start and text:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._ended_in_cr and text:
            self._ended_in_cr = False
            text = text.removeprefix("\n")
        if "\r" not in text:
            return text
        self._ended_in_cr = text.endswith("\r")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _line(self, line: str, events: list[ServerEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        text = line.lstrip()
        if text.startswith("data:") or text[:5].lower() == "data:":
            self._data_line(text[5:].removeprefix(" "), events)
        elif self._bare:
            self._bare.append(line)
            if line.rstrip() == _CLOSERS[self._bare[0][0]]:
                self._dispatch(events)
        elif self._data and self._data[0].rstrip() in _CLOSERS:
            self._data.append(
                line
            )  # of pretty-printed JSON, the field name stands before its first line only
        elif text[:1] in _CLOSERS:
            self._bare_line(text, events)
        elif self._data and self._data[0].startswith("{") and not self._data[0].rstrip().endswith("}"):
            self._data.append(line)  # a line break in a text that was not escaped
        elif text.startswith("event:"):
            if self._data:
                self._dispatch(events)
            self._name = text[6:].strip()

    def _data_line(self, value: str, events: list[ServerEvent]) -> None:
        if self._bare:
            self._dispatch(events)
        while value.startswith("data:"):  # some relays prefix what is already prefixed
            value = value[5:].removeprefix(" ")
        if self._data and _begins_anew(self._data[-1], value):
            self._dispatch(events)
        self._data.append(value)

    def _bare_line(self, text: str, events: list[ServerEvent]) -> None:
        """A JSON line without a field name: one whole value, or the first line of one."""
        self._dispatch(events)
        self._bare.append(text)
        if text.rstrip().endswith(_CLOSERS[text[0]]):
            self._dispatch(events)

    def _dispatch(self, events: list[ServerEvent]) -> None:
        lines = self._data or self._bare
        if lines:
            events.append((self._name, "\n".join(lines)))
            self._data = []
            self._bare = []
        self._name = ""


def _begins_anew(last: str, value: str) -> bool:
    """Whether a data line cannot belong to the event of the line before it, though no blank line parts them.

    No JSON text has a line that ends in "}" before one that starts with "{": a comma would stand between.
    """
    last = last.rstrip()
    return (
        value.lstrip().startswith("[DONE]")
        or last == "[DONE]"
        or (last.endswith("}") and value.startswith("{"))
    )
