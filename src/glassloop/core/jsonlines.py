"""Text of one JSON object a line, as exports and recordings are kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from glassloop.core.errors import SessionError


def objects_in(lines: Iterable[str], what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each object with the number of its line, from 1; empty lines are passed over.

    Raises `SessionError`, naming the line of `what`, for a line that is no JSON object.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SessionError(f"line {number} of the {what} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise SessionError(f"line {number} of the {what} is no object")
        yield number, found
