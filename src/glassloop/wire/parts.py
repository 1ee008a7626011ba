"""Text, images and files as content parts, or as text where an endpoint takes no such thing."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from glassloop.core.entries import File, Image, Part, Text
from glassloop.wire.profile import Profile

Message = dict[str, Any]

NO_TEXT = "(no text)"

_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def user_content(parts: Sequence[Part], profile: Profile, *, empty: str = NO_TEXT) -> str | list[Message]:
    """A plain string if it is all text, else a list of content parts. Never empty."""
    content = [
        text_part(part.text) if isinstance(part, Text) else _shown_or_said(part, profile) for part in parts
    ]
    if all(part["type"] == "text" for part in content):
        text = "\n\n".join(part["text"] for part in content)
        return text if text.strip() else empty
    return [part for part in content if part["type"] != "text" or part["text"].strip()]


def as_parts(content: str | list[Message]) -> list[Message]:
    return [text_part(content)] if isinstance(content, str) else content


def text_part(text: str) -> Message:
    return {"type": "text", "text": text}


def _shown_or_said(part: Image | File, profile: Profile) -> Message:
    return shown(part, profile) or text_part(left_out(part))


def shown(part: Image | File, profile: Profile) -> Message | None:
    """The content part for it, or None if it goes as text: text files always, others where nothing else is taken."""
    match part:
        case Image(url=str(url)) if profile.images:
            return {"type": "image_url", "image_url": {"url": url}}
        case Image(data=bytes(data)) if profile.images:
            return {"type": "image_url", "image_url": {"url": _data_url(part.media_type, data)}}
        case File() if profile.files and not _is_text(part):
            data_url = _data_url(part.media_type, part.data)
            return {"type": "file", "file": {"filename": part.name, "file_data": data_url}}
    return None


def _is_text(file: File) -> bool:
    return file.media_type.startswith(_TEXT_TYPES)


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def described(part: Image | File) -> str:
    if isinstance(part, File):
        return f"file {part.name!r}, {part.media_type}, {len(part.data)} bytes"
    return f"image, {part.media_type}"


def left_out(part: Image | File) -> str:
    """What stands for it in text: a text file's content; of anything else, that it was there."""
    if isinstance(part, File) and _is_text(part):
        return f"{part.name}:\n{part.data.decode('utf-8', 'replace')}"
    return f"({described(part)}; it was left out, as this model cannot be shown it)"
