"""Mends what servers get wrong in the two answers that matter, before the SDK's strict types read them. Pure.

One odd tool in a list, or one odd block in a result, must not cost the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_BLOCKS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource": {"resource": dict},
    "resource_link": {"uri": str, "name": str},
}
"""The blocks that are known, and the fields without which they cannot be."""

_SHOWN = 2_000


def listing(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A `tools/list` answer whose every tool the SDK can read; what was said of it stays under `_meta`."""
    tools = raw.get("tools")
    listed = [one for one in tools if isinstance(one, Mapping)] if isinstance(tools, list) else []
    made: dict[str, Any] = {**raw, "tools": [_tool(one) for one in listed]}
    if not isinstance(raw.get("nextCursor"), str):
        made.pop("nextCursor", None)
    return made


def as_listed(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool of a mended listing, as its server sent it."""
    sent = tool["_meta"][_SENT]
    assert isinstance(sent, Mapping)
    return sent


_SENT = "glassloop/sent"


def _tool(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(sent.get("name", "")),
        "inputSchema": {"type": "object"},
        "_meta": {_SENT: dict(sent)},
    }


def result(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A `tools/call` answer with only blocks that can be read; of others their JSON is told."""
    content = raw.get("content")
    if isinstance(content, (str, Mapping)):
        content = [content]
    if raw.get("resultType", "complete") != "complete":
        return {**_REFUSED, "resultType": "complete"}
    made = {key: raw[key] for key in ("resultType",) if key in raw}
    made["content"] = [_block(one) for one in content] if isinstance(content, list) else []
    made["isError"] = raw.get("isError") is True
    if isinstance(raw.get("structuredContent"), Mapping):
        made["structuredContent"] = raw["structuredContent"]
    return made


_REFUSED: Mapping[str, Any] = {
    "content": [
        {"type": "text", "text": "The server asks for more input (a sample, a form), which is refused."}
    ],
    "isError": True,
}


def _block(sent: Any) -> dict[str, Any]:
    if isinstance(sent, str):
        return {"type": "text", "text": sent}
    kind = sent.get("type") if isinstance(sent, Mapping) else None
    needs = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if needs is None or not all(isinstance(sent.get(name), each) for name, each in needs.items()):
        return {"type": "text", "text": f"(a block of an unknown kind: {json.dumps(sent)[:_SHOWN]})"}
    kept = {"type": kind, **{name: sent[name] for name in needs}}
    if kind == "resource":
        kept["resource"] = _resource(sent["resource"])
    if kind == "resource_link":
        kept |= {name: sent[name] for name in ("description", "mimeType") if isinstance(sent.get(name), str)}
    return kept


def _resource(sent: Mapping[str, Any]) -> dict[str, Any]:
    body = "blob" if isinstance(sent.get("blob"), str) else "text"
    kept = {"uri": str(sent.get("uri", "")), body: str(sent.get(body, ""))}
    if isinstance(sent.get("mimeType"), str):
        kept["mimeType"] = sent["mimeType"]
    return kept


class Lenient:
    """The SDK's dispatcher, with those two answers mended on their way to the session."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self.run = dispatcher.run
        self.notify = dispatcher.notify

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        """As the SDK's."""
        raw = await self._dispatcher.send_raw_request(method, params, opts)
        mend = _MENDED.get(method)
        return mend(raw) if mend else dict(raw)


_MENDED: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "tools/list": listing,
    "tools/call": result,
}
