"""One tool call while its fragments come: its id, its name, and the pieces of its arguments. `slots` decides whose
a fragment is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from glassloop.core.entries import JSON
from glassloop.wire import strictjson

_IN_STRING = re.compile(r'(?:[^"\\]++|\\.)*+("|\\?\Z)', re.DOTALL)


class Slot:
    """One call under construction."""

    id = ""
    name = ""
    whole: JSON = None
    after: Slot | None = None  # the call whose arguments were complete when these began, unnamed
    _scanned = 0
    _depth = 0
    _opened = False
    _in_string = False
    _escape = ""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.extra: dict[str, JSON] = {}

    @property
    def has_arguments(self) -> bool:
        return self.whole is not None or any(piece.strip() for piece in self.pieces)

    def is_complete(self) -> bool:
        """Whether the arguments so far are a whole object. However often it is asked, each character is read once."""
        if self.whole is not None:
            return True
        for piece in self.pieces[self._scanned :]:
            self._scan(piece)
        self._scanned = len(self.pieces)
        return self._opened and self._depth == 0 and not self._in_string

    def _scan(self, piece: str) -> None:
        text = self._escape + piece
        self._escape = ""
        position = 0
        while position < len(text):
            if self._in_string:
                match = _IN_STRING.match(text, position)
                assert match is not None  # the pattern matches anything
                self._in_string = match[1] != '"'
                self._escape = "\\" if match[1] == "\\" else ""
                position = match.end()
                continue
            quote = text.find('"', position)
            end = quote if quote >= 0 else len(text)
            opened = text.count("{", position, end) + text.count("[", position, end)
            self._depth += opened - text.count("}", position, end) - text.count("]", position, end)
            self._opened = self._opened or bool(opened)
            self._in_string = quote >= 0
            position = end + 1

    def add_name(self, piece: str, known: Collection[str]) -> None:
        """A name comes once, or again in full, or in pieces."""
        if not piece or piece == self.name:
            return
        if not self.name or piece.startswith(self.name):
            self.name = piece
        elif not self.has_arguments or self.name + piece in known:
            self.name += piece

    def add_arguments(self, piece: JSON) -> None:
        if isinstance(piece, str):
            self.pieces.append(piece)
        elif piece is not None:
            self.whole = (
                {**self.whole, **piece} if isinstance(piece, dict) and isinstance(self.whole, dict) else piece
            )

    def arguments(self) -> JSON:
        """The arguments: the pieces joined, or the last of them if each holds all that came before it."""
        if not self.pieces:
            return self.whole
        snapshot = self.snapshot()
        return "".join(self.pieces) if snapshot is None else snapshot

    def snapshot(self) -> str | None:
        """The last piece, if each holds all that came before it."""
        if len(self.pieces) < 2:
            return None
        pieces = [piece for piece in self.pieces if piece.strip()]
        if len(pieces) < 2 or not all(pieces[-1].startswith(piece) for piece in pieces):
            return None
        return None if _is_json("".join(self.pieces)) else pieces[-1]

    def item(self) -> dict[str, JSON]:
        """The call as a body would hold it."""
        function: dict[str, JSON] = {"name": self.name}
        arguments = self.arguments()
        if arguments is not None:
            function["arguments"] = arguments
        return {**({"id": self.id} if self.id else {}), **self.extra, "function": function}


def _is_json(text: str) -> bool:
    try:
        strictjson.parse(text, control_characters=True)
    except ValueError:
        return False
    return True
