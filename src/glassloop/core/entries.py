"""What a conversation is made of. Frozen values only; how they look on a wire is `wire/`'s business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import field

from glassloop.core.values import Value, repr_without

JSON = Any
"""A value that `json.dumps` takes as it is: None, bool, int, float, str, list or dict of these."""


class Text(Value, frozen=True, tag="text"):
    """A piece of plain text."""

    text: str


class Image(Value, frozen=True, tag="image"):
    """A picture: either its bytes with a media type, or the URL where an endpoint may fetch it."""

    media_type: str = "image/png"
    data: bytes | None = None
    url: str | None = None

    def __repr__(self) -> str:
        return repr_without(self, "data")


class File(Value, frozen=True, tag="file"):
    """A file by name, media type and bytes."""

    name: str
    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return repr_without(self, "data")


Part = Text | Image | File
Content = str | Part | Sequence[str | Part]
"""What people may write where parts are kept."""


def parts_of(content: Content) -> tuple[Part, ...]:
    """Content in any of its accepted forms, as parts. Raises `TypeError` for anything else."""
    if isinstance(content, (str, Text, Image, File)):
        content = (content,)
    if not isinstance(content, (list, tuple)):
        raise TypeError(f"content is text, a part or a list of these, not {type(content).__name__}")
    parts = tuple(Text(one) if isinstance(one, str) else one for one in content)
    for one in parts:
        if not isinstance(one, (Text, Image, File)):
            raise TypeError(f"a part of content is Text, Image or File, not {type(one).__name__}")
    return parts


def text_of(parts: Sequence[Part]) -> str:
    """The text of all text parts, joined."""
    return "".join([part.text for part in parts if isinstance(part, Text)])


class Mend(Value, frozen=True):
    """One deviation that was mended on the way. `code` is stable and short, `detail` is for people."""

    code: str
    detail: str


class Usage(Value, frozen=True):
    """Tokens of one or more model calls. None means that the endpoint did not say; it is never guessed."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
            _sum(self.total_tokens, other.total_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


class ToolCall(Value, frozen=True):
    """A request of the model to run one tool.

    `text` is exactly what arrived as arguments, `arguments` the object read from it, and `problem`
    why the call must not run (None if it may). `id` is unique in the conversation and not empty.
    `extra` holds the fields of the wire's call that some endpoints want back (a thought signature).
    """

    id: str
    name: str
    arguments: Mapping[str, JSON] | None
    text: str = ""
    problem: str | None = None
    extra: Mapping[str, JSON] | None = None


class System(Value, frozen=True, weakref=True, gc=True):
    """Instructions. All of a conversation's are sent as one leading system message."""

    text: str


class User(Value, frozen=True, weakref=True, gc=True):
    """What a person said: the task, a message that steers or follows up a running one, or an example's question.

    `pinned`: it is sent word for word however long the conversation grows.
    """

    parts: tuple[Part, ...]
    kind: Literal["task", "steer", "follow_up", "example"] = "task"
    pinned: bool = False

    @property
    def text(self) -> str:
        return text_of(self.parts)


class Reply(Value, frozen=True, weakref=True, gc=True):
    """One answer of a model. `raw` is the assistant message as received; the rest was read from it.

    `text` has calls that were written as text and thinking removed. `finish_reason` is the endpoint's
    word, unchecked. `reasoning_field` is the wire's name for the reasoning, for sending it back.
    `cost` is in US dollars where the endpoint reports it; `price` is that of a price table where it does
    not. `cut_off` says that an output limit or a broken stream ended the reply early. `mends` lists every
    deviation that was mended. `context_window` is the model's, in tokens, where it is known.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    mends: tuple[Mend, ...] = ()
    raw: Mapping[str, JSON] = field(default_factory=dict)
    reasoning_field: str | None = None
    model: str | None = None
    response_id: str | None = None
    cut_off: bool = False
    refused: bool = False
    price: float | None = None
    context_window: int | None = None

    def __repr__(self) -> str:
        return repr_without(self, "raw")

    @property
    def is_empty(self) -> bool:
        """Neither a call nor any text that a person could read (reasoning does not count)."""
        return not self.tool_calls and not self.text.strip()


ResultState = Literal["ok", "error", "refused", "unknown"]


class ToolResult(Value, frozen=True, weakref=True, gc=True):
    """What came of one tool call.

    `ok`: it ran and returned. `error`: it ran and failed, or its arguments were wrong. `refused`: it
    did not run (denied, cut off, over a limit, cancelled before it started). `unknown`: it was
    started and nobody can say whether it took effect.
    """

    call_id: str
    name: str
    parts: tuple[Part, ...]
    state: ResultState = "ok"
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return text_of(self.parts)


def refused(call: ToolCall, why: str) -> ToolResult:
    """The result of a call that did not run."""
    return ToolResult(call.id, call.name, (Text(why),), "refused")


def unknown(call: ToolCall) -> ToolResult:
    """The result of a call that was started and of which nobody can say whether it took effect."""
    why = "Started, then interrupted: whether it took effect is unknown. Check before repeating this call."
    return ToolResult(call.id, call.name, (Text(why),), "unknown")


class Note(Value, frozen=True, weakref=True, gc=True):
    """A word from Glassloop itself to the model: a nudge, a repetition noticed, a limit reached."""

    text: str
    reason: Literal["empty_reply", "repeated_calls", "limit", "output", "notice"] = "notice"


class Summary(Value, frozen=True, weakref=True, gc=True):
    """Stands, when sent, for the first `replaces` entries of the conversation; those are kept all the same.

    The conversation begins after the instructions and examples, and every entry of it counts, also those
    that are never sent. With 0 it stands where it is. `usage`: the tokens that writing it took.
    """

    text: str
    replaces: int
    usage: Usage = Usage()


Entry = System | User | Reply | ToolResult | Note | Summary
