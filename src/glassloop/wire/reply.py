"""A complete body → a `Reply`, or why it is none. The first byte says what kind of body it is, never a header."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.core.entries import JSON, Reply
from glassloop.core.tools import ToolSpec
from glassloop.wire import completion
from glassloop.wire.bodies import whole_object
from glassloop.wire.completion import Failure
from glassloop.wire.stream import StreamReader

__all__ = ["Failure", "read_body", "read_completion"]


def read_body(body: bytes, tools: Mapping[str, ToolSpec], *, tool_mode: str = "native") -> Reply | Failure:
    """Read a body that arrived whole: a completion, or a stream that was answered unasked.

    `tools` are those that were offered, by name. Never raises: what cannot be read is a `Failure`.
    """
    # As nearly all are; what cannot be read so is looked into.
    if b'"delta"' not in body and (whole := whole_object(body)) is not None:
        reply = completion.read_completion(whole, tools, tool_mode=tool_mode)
        if isinstance(reply, Reply):
            return reply
    reader = StreamReader(tools, tool_mode=tool_mode)
    reader.feed(body)
    return reader.finish()


def read_completion(
    obj: JSON, tools: Mapping[str, ToolSpec], *, tool_mode: str = "native"
) -> Reply | Failure:
    """Read a body that was parsed already."""
    return completion.read_completion(obj, tools, tool_mode=tool_mode)
