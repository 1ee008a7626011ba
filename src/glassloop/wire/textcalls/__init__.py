"""Tool calls written as text: read from answers, and written for models that have no tool calling.

`TextCallReader` reads while an answer streams, `find_calls` reads a whole one. The words of each family
stand in `tokens`, the notations in `body`, `tags`, `values`, `whole` and `harmony`.
"""

from glassloop.wire.textcalls.families import (
    FAMILIES,
    Family,
    family_for,
    render_calls,
    render_result,
    render_tools,
)
from glassloop.wire.textcalls.reader import TextCallReader, TextCalls, find_calls

__all__ = [
    "FAMILIES",
    "Family",
    "TextCallReader",
    "TextCalls",
    "family_for",
    "find_calls",
    "render_calls",
    "render_result",
    "render_tools",
]
