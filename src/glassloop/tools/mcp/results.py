"""What a server's tool gave → parts for a model, within limits. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from glassloop.core.entries import Image, Part, Text

LARGEST_IMAGE = 5_000_000
"""Bytes of a picture that is passed on; endpoints take little more."""

_MOST_IMAGES = 20
_MOST_BLOCKS = 1_000
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def parts_of_result(result: Mapping[str, Any]) -> list[Part]:
    """The parts of a `tools/call` answer (mended, as JSON): text as it is, pictures, and words for all else."""
    content = result.get("content", [])
    parts = [_block(one) for one in content[:_MOST_BLOCKS]]
    if len(content) > _MOST_BLOCKS:
        parts.append(Text(f"({len(content) - _MOST_BLOCKS} more blocks left out)"))
    structured = result.get("structuredContent")
    if structured is not None and not _says_it(parts, structured):
        parts.append(Text(json.dumps(structured, ensure_ascii=False)))
    return _joined(_few_pictures(parts))


def _says_it(parts: list[Part], structured: Mapping[str, Any]) -> bool:
    """Whether the text is the structured content already: servers are told to send it both ways."""
    said = [_value(part.text) for part in parts if isinstance(part, Text)]
    wrapped = structured.get("result", structured)
    return bool(said) and (structured in said or wrapped in said or said == wrapped)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _block(block: Mapping[str, Any]) -> Part:
    return _KINDS[block["type"]](block)


def _text(block: Mapping[str, Any]) -> Part:
    return Text(block["text"])


def _image(block: Mapping[str, Any]) -> Part:
    return _picture(block["data"], block["mimeType"], "image")


def _audio(block: Mapping[str, Any]) -> Part:
    return Text(f"(audio, {block['mimeType']}, {len(block['data']) * 3 // 4} bytes: cannot be passed on)")


def _resource(block: Mapping[str, Any]) -> Part:
    """An embedded resource: its text under its address, a picture as one, other bytes in words."""
    resource = block["resource"]
    uri, kind = resource["uri"], resource.get("mimeType", "")
    if "blob" not in resource:
        return Text(f"[{uri}]\n{resource['text']}")
    if kind in _PICTURES:
        return _picture(resource["blob"], kind, uri)
    return Text(f"({uri}: {kind or 'bytes'}, {len(resource['blob']) * 3 // 4} bytes: cannot be passed on)")


def _link(block: Mapping[str, Any]) -> Part:
    """A link is told and never followed."""
    about = ", ".join(block[key] for key in ("name", "mimeType", "description") if block.get(key))
    return Text(f"(a resource of the server: {block['uri']} ({about}))")


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Part]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _link,
}


def _picture(data: str, kind: str, what: str) -> Part:
    try:
        image = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"({what}: a picture that cannot be read)")
    if len(image) > LARGEST_IMAGE or kind not in _PICTURES:
        return Text(f"({what}: a picture, {kind}, {len(image)} bytes: cannot be passed on)")
    return Image(kind, image)


def _few_pictures(parts: list[Part]) -> list[Part]:
    kept: list[Part] = []
    pictures = 0
    for part in parts:
        pictures += isinstance(part, Image)
        kept.append(
            Text("(one more picture)") if isinstance(part, Image) and pictures > _MOST_IMAGES else part
        )
    return kept


def _joined(parts: list[Part]) -> list[Part]:
    """Neighbouring texts as one, a line each: they are told apart by nothing else."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(f"{joined[-1].text}\n{part.text}")
        else:
            joined.append(part)
    return joined
