"""What the request that was refused contained: the facts that decide what can be changed about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from glassloop.core.entries import JSON
from glassloop.wire.profile import Profile

_ALWAYS = frozenset(("model", "messages"))


@dataclass(frozen=True, slots=True)
class Sent:
    """Read from the body that was sent, so that it cannot differ from it. `Sent()` is a request of nothing known.

    `options` are the top-level fields beside model, messages and tools, with what was sent under them.
    `message_fields` and `call_fields` are the field names on messages and on calls. `lists` are the roles whose
    content was a list, `part_types` what these held. `most_calls`: in one message. `repeats`: two neighbours have
    one role, or a user follows a tool. `size` in bytes. `tried`: the codes of the adaptations already made for
    this request.
    """

    profile: Profile = Profile()
    model: str = ""
    tried: frozenset[str] = frozenset()
    options: Mapping[str, JSON] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    schemas: tuple[Mapping[str, JSON], ...] = ()
    descriptions: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    message_fields: frozenset[str] = frozenset()
    call_fields: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    part_types: frozenset[str] = frozenset()
    systems: int = 0
    most_calls: int = 0
    repeats: bool = False
    size: int = 0

    @staticmethod
    def of(body: bytes, profile: Profile, tried: Iterable[str] = ()) -> Sent:
        """The facts of one request's body. Raises ValueError if that is no JSON object."""
        request = json.loads(body)
        if not isinstance(request, dict):
            raise ValueError("a request's body is a JSON object")
        messages: list[dict[str, Any]] = [
            each for each in request.get("messages", []) if isinstance(each, dict)
        ]
        functions = [tool.get("function", {}) for tool in request.get("tools", [])]
        calls = [call for message in messages for call in message.get("tool_calls") or []]
        roles = [str(message.get("role")) for message in messages]
        lists = [message for message in messages if isinstance(message.get("content"), list)]
        return Sent(
            profile=profile,
            model=str(request.get("model") or ""),
            tried=frozenset(tried),
            options={key: value for key, value in request.items() if key not in (*_ALWAYS, "tools")},
            tools=tuple(str(function.get("name")) for function in functions),
            schemas=tuple(function.get("parameters", {}) for function in functions),
            descriptions=tuple(
                function["description"] for function in functions if "description" in function
            ),
            roles=frozenset(roles),
            message_fields=frozenset(key for message in messages for key in message),
            call_fields=frozenset(key for call in calls for key in call),
            lists=frozenset(str(message.get("role")) for message in lists),
            part_types=frozenset(str(part.get("type")) for message in lists for part in message["content"]),
            systems=sum(role in ("system", "developer") for role in roles),
            most_calls=max((len(message.get("tool_calls") or []) for message in messages), default=0),
            repeats=any(
                before == after != "tool" or (before, after) == ("tool", "user")
                for before, after in pairwise(roles)
            ),
            size=len(body),
        )

    def number(self, name: str) -> float | None:
        """The number sent under `name`, if it was one."""
        value = self.options.get(name)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
