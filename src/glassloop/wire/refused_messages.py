"""Rules for what endpoints refuse about messages: past calls and results, roles and their order, content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from glassloop.wire.rule import Refusal, Step, always, has_calls, has_results, or_text, to_text
from glassloop.wire.sent import Sent
from glassloop.wire.vocabulary import MISSING, REFUSED, near, pattern

# ── what is on past calls and results ────────────────────────────────────────────────────────────────────────────

_REASONING = (
    r"\b(?:reasoning_content|reasoning_details|reasoning_text|reasoning|thinking_blocks|thinking|思考内容)\b"
)


def _reasoning_name(sent: Sent, text: str) -> Iterator[Step]:
    found = re.search(r"reasoning_content|reasoning_details|reasoning_text|thinking_blocks", text)
    name = found.group(0) if found and found.group(0) != "reasoning_details" else "reasoning_content"
    yield f"reasoning_name:{name}", {"reasoning_name": name, "reasoning_back": "loop"}
    yield f"reasoning_name:{name}:always", {"reasoning_name": name, "reasoning_back": "always"}


def _signature_steps(sent: Sent, text: str) -> Iterator[Step]:
    if sent.profile.call_extra and re.search(r"invalid|not valid|corrupt|mismatch|decod|verif", text):
        yield "call_extra:no", {"call_extra": False, "signature": True}
    yield "signature:placeholder", {"signature": True, "call_extra": True}
    yield to_text(sent)


def _id_steps(sent: Sent, text: str) -> Iterator[Step]:
    if not re.search(r"\b9\b|\bnine\b", text):
        yield "ids:safe", {"ids": "safe"}
    yield "ids:nine", {"ids": "nine"}


def _argument_steps(sent: Sent, text: str) -> Iterator[Step]:
    wants_text = re.search(
        r"(?:must be|should be|expected|type|valid|into)(?: an?)?(?: valid| json)* str(?:ing)?\b", text
    )
    if sent.profile.arguments == "object" or not wants_text:
        wanted = "text" if sent.profile.arguments == "object" else "object"
        yield f"arguments:{wanted}", {"arguments": wanted}


_CALL_IDS = (
    r"tool_?call_?ids?|tool_?calls?\W{0,4}(?:\w+\W{0,3}){0,2}\bids?\b|\bcall[ _]ids?\b"
    r"|tool_?(?:use|result)\W{0,3}\bids?\b|\bids? (?:of|for|in) (?:the )?tool"
)

CALL_RULES = (
    Refusal(
        pattern(
            near(
                r"\bsingle\b|\bone\b|parallel|multiple|more than one",
                r"tool[ _-]?calls?\b|function[ _-]?calls?\b",
                40,
            )
        ),
        lambda sent: sent.most_calls > 1,
        or_text(("parallel_calls:no", {"parallel_calls": False})),
        pattern(r"parallel_tool_calls"),
    ),
    Refusal(pattern(r"thought[_ ]?signature"), has_calls, _signature_steps),
    Refusal(
        pattern(near(_REASONING, MISSING)),
        lambda sent: "assistant" in sent.roles,
        _reasoning_name,
        pattern(
            near(
                _REASONING,
                r"unsupported|not supported|extra|unrecogni[sz]ed|unknown|not allowed|not permitted",
            )
        ),
    ),
    Refusal(
        pattern(near(_REASONING, REFUSED)),
        lambda sent: any(re.search("reason|think", name) for name in sent.message_fields),
        always(("reasoning_back:never", {"reasoning_back": "never", "reasoning_name": None})),
    ),
    Refusal(
        pattern(
            near(
                _CALL_IDS,
                r"length|long|short|characters?|alphanum\w*|a-z|pattern|match|invalid|format|must be|maximum|max\b",
            ),
        ),
        has_calls,
        _id_steps,
        pattern(r"not found|did not have|no (?:matching|corresponding)|must be followed"),
    ),
    Refusal(
        pattern(near(r"['\"`.]index\b(?!['\"`]?[ :=\[]*\d)", MISSING, 40)),
        lambda sent: has_calls(sent) and "index" not in sent.call_fields,
        always(("call_index:yes", {"call_index": True})),
    ),
    Refusal(
        pattern(
            near(
                r"\barguments?\b",
                r"\bobject\b|\bdict\w*|\bmapping\b|\bmap\b|\bstruct\b|\brecord\b|\.items|\bstring\b",
            ),
            r"item pairs from a mapping|has no (?:attribute|method)\W+items|unknown (?:method|filter).{0,40}items",
        ),
        has_calls,
        _argument_steps,
    ),
    Refusal(
        re.compile(
            r"\A(?=.*(?:\btool\b|function_?response|\bmessages?\b|\bfield\b)).*?"
            + near(r"\bname\b", MISSING, 40),
            re.DOTALL,
        ),
        lambda sent: has_results(sent) and "name" not in sent.message_fields,
        always(("tool_name:yes", {"tool_name": True})),
    ),
    Refusal(
        pattern(
            near(r"messages?\b", near(r"(?<!function[.'\"`])\bname\b", rf"{REFUSED}|match|pattern")),
            near(r"(?:property|field|parameter|key|input|argument)s?:? ?['\"`]?name\b", REFUSED),
        ),
        lambda sent: "name" in sent.message_fields,
        always(("tool_name:no", {"tool_name": False})),
        pattern(r"function\W{1,3}name|model[ _]name"),
    ),
)

# ── roles and their order ────────────────────────────────────────────────────────────────────────────────────────

_ROLES = ("developer", "system", "tool")
_ROLE_WORDS = r"['\"`]?\b(?:system|developer|user|assistant|tool|function)\b['\"`]?"
_SPEAKERS = r"(?=[^\n]{0,80}?\b(?:user|assistant)\b)"
"""A list of roles names one of those that no endpoint lacks; "tool/function" is no such list."""
_ENUMERATED = rf"{_SPEAKERS}{_ROLE_WORDS}(?:\s*(?:,|\||/|or|and|、|或)\s*(?:or\s+|and\s+)?{_ROLE_WORDS})+"
_BY_ROLE: Mapping[str, Step] = {
    "developer": ("system:system", {"system": "system"}),
    "system": ("system:user", {"system": "user"}),
}


def _role_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Roles that are refused by name, then those that an enumeration of the allowed ones leaves out."""
    refused = [
        role
        for role in _ROLES
        if role in sent.roles
        and re.search(
            near(rf"['\"`]\b{role}\b['\"`]|\b{role} role|\brole:? {role}\b|^{role}\b", REFUSED, 30), text
        )
    ]
    lists = re.findall(_ENUMERATED, text)
    if lists:
        allowed = set(re.findall(r"[a-z]+", max(lists, key=len)))
        refused = (
            [role for role in refused if role not in allowed]
            or [role for role in _ROLES if role in sent.roles and role not in allowed]
            or refused
        )
    steps = [_BY_ROLE.get(role) or to_text(sent) for role in refused]
    if len(steps) > 1 and lists:
        yield "+".join(code for code, _ in steps), {key: each[key] for _, each in steps for key in each}
    yield from steps


def _system_steps(sent: Sent, text: str) -> Iterator[Step]:
    if "developer" in sent.roles:
        yield _BY_ROLE["developer"]
    yield _BY_ROLE["system"]


def _order_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Merge neighbours where there are any; a template that knows no tool role needs calls as text."""
    merge: Step = ("alternate:yes", {"alternate": True, "user_after_tool": "fold"})
    if sent.repeats:
        yield merge
    if "tool" in sent.roles:
        yield "alternate:text", {"alternate": True, **to_text(sent)[1]}
    yield merge
    yield "alternate:system", {"alternate": True, "system": "user"}


ROLE_RULES = (
    Refusal(
        pattern(
            near(r"\buser\b", r"\btool\b[^\n]{0,20}", 30),
            near(r"\btool\b", r"(?:followed by|expect\w*|requires?|needs?) (?:an? )?assistant\b", 40),
        ),
        lambda sent: sent.repeats and "tool" in sent.roles,
        always(("user_after_tool:fold", {"user_after_tool": "fold"})),
        pattern(r"alternat", _ENUMERATED),
    ),
    Refusal(pattern(r"alternat\w*|consecutive|same role"), lambda sent: bool(sent.roles), _order_steps),
    Refusal(
        pattern(
            near(
                r"\b(?:first|last) (?:message|role|turn)|final message|end(?:s|ing)? with|at the end|最后一[条个]",
                r"\buser\b|assistant|prefix|prefill",
            ),
            near(r"\bassistant\b", r"\bprefill\w*"),
        ),
        lambda sent: bool(sent.roles),
        _order_steps,
    ),
    Refusal(
        pattern(near(r"\broles?\b", REFUSED), _ENUMERATED, near(r"['\"`]?\bdeveloper\b['\"`]?", REFUSED, 30)),
        lambda sent: bool(sent.roles & frozenset(_ROLES)),
        _role_steps,
        pattern(r"must be (?:a response|followed)|\balternat"),
    ),
    Refusal(
        pattern(
            near(
                r"\b(?:system|developer)[ _]?(?:message|prompt|role|instruction)s?\b",
                rf"{REFUSED}|\bmust\b|\bonly\b|\bfirst\b|beginning|\bstart\b|multiple|more than one|single|\bone\b",
            ),
        ),
        lambda sent: sent.systems > 0,
        _system_steps,
    ),
)

# ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────

_NO_TEXT = r"empty|blank|whitespace|too short|min_?length|at least (?:1|one) char|为空|不能为空"
_NO_VALUE = r"\bnull\b|\bnone\b|nonetype|missing|required|must have|either|undefined|\bnil\b"
_NOT_TEXT = (
    r"(?:be|expected|type|a|into)(?: an?)?(?: valid)? str(?:ing)?\b|str(?:ing)? type expected"
    r"|(?:got|but|found|unmarshal|received) (?:an? )?['\"`]?(?:list|array|sequence)\b|['\"`](?:array|list)['\"`] not in"
    r"|string or (?:an )?(?:array|list)"
)


_NULL_CONTENT = pattern(near(r"\bcontents?\b", r"\bnull\b|\bnone\b"))


def _content_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Content that is a list first; else another spelling of the content of a turn that only has calls."""
    if sent.lists and re.search(_NOT_TEXT, text) and not _NULL_CONTENT.search(text):
        if "tool" in sent.lists:
            yield "images_in_tools:no", {"images_in_tools": False}
        yield "parts:no", {"images": False, "files": False}
        return
    if not has_calls(sent) or _OF_A_RESULT.search(text):
        return
    empty = re.search(_NO_TEXT, text) is not None
    for spelling in ("omit", "null", "blank", "words") if empty else ("", "blank", "words"):
        yield f"call_content:{spelling or 'empty'}", {"call_content": spelling}


_OF_A_RESULT = pattern(r"role\W{1,3}tool\b", r"\.tool\.content", r"\btool (?:message|result)'?s? content")
"""Content of a tool message, which is one text that is not empty whatever the profile."""

_BROKEN_PICTURE = pattern(r"make sure|valid image|download|decod\w*|corrupt|too (?:large|big)|fetch")

CONTENT_RULES = (
    Refusal(
        pattern(
            near(
                r"\bimages?\b|image_url|\bvision\b|multi-?modal|图片|图像",
                rf"{REFUSED}|only|support image|at most|may be provided",
            ),
            r"only (?:supports? )?text",
        ),
        lambda sent: "image_url" in sent.part_types,
        always(("images:no", {"images": False, "images_in_tools": False})),
        _BROKEN_PICTURE,
    ),
    Refusal(
        pattern(
            near(r"\bfiles?\b|\bpdf\b|documents?\b|文件", rf"{REFUSED}|only"), r"only (?:supports? )?text"
        ),
        lambda sent: "file" in sent.part_types,
        always(("files:no", {"files": False})),
        _BROKEN_PICTURE,
    ),
    Refusal(
        pattern(
            near(r"\bcontents?\b|\bturns?\b", f"{_NO_TEXT}|{_NO_VALUE}|{_NOT_TEXT}"),
            near(r"\bmessages?\b", r"\bempty\b|为空"),
            r"nonetype|is not callable: null|null has no",
            r"messages?\W{0,2}[.\[]\W*\d+\]?: invalid type",
        ),
        lambda sent: "assistant" in sent.roles or bool(sent.lists),
        _content_steps,
        pattern(r"must be followed|must be a response|tool_call_id"),
    ),
)


def _extra_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Fields on messages and calls that are neither the protocol's core nor handled above."""
    fields = (sent.message_fields | sent.call_fields) - _CORE
    if any(re.search(near(rf"\b{re.escape(name.lower())}\b", REFUSED), text) for name in fields):
        yield "call_extra:no", {"call_extra": False, "signature": False}


_CORE = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", "id", "type", "function"))

LAST_RULES = (
    Refusal(
        pattern(REFUSED), lambda sent: bool((sent.message_fields | sent.call_fields) - _CORE), _extra_steps
    ),
    Refusal(
        pattern(
            near(
                r"tool[_ ]?(?:call|result|use|message)(?:s|_ids?)?\b|role\W+tool\b|function (?:call|response)s?",
                r"must be (?:followed|a response|preceded)|followed by|not found|no (?:matching|corresponding)|missing"
                r"|mismatch|did not have|without|equal|immediately|previous|prece+ding|before|after"
                r"|correspond\w*|same number|number of",
                120,
            ),
        ),
        has_calls,
        or_text(("ids:nine", {"ids": "nine"}), ("user_after_tool:fold", {"user_after_tool": "fold"})),
        pattern(r"failed to (?:parse|call)"),
    ),
)
