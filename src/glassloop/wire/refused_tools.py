"""Rules for what endpoints refuse about tools: their schemas, names and number, and tools altogether."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from glassloop.core.entries import JSON
from glassloop.wire import diet
from glassloop.wire.profile import DEEPEST_DIET
from glassloop.wire.rule import Refusal, Step, always, has_calls, has_tools, or_text, to_text
from glassloop.wire.sent import Sent
from glassloop.wire.vocabulary import MISSING, NO_CALL_PARSER, REFUSED, UNREAD_CALL, near, pattern

# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

_TOOLS = (
    r"(?<!no )(?:\btools?\b(?!_)(?:[ _-]?(?:use|usage|call(?:s|ing)?|parser))?"
    r"|\bfunctions?(?:[ _-]?call(?:s|ing)?)?\b|工具|函数)"
)
_INSIDE_TOOLS = r"tools?[^\w\n]{1,3}\d+|\btools?\[|functions?[^\w\n]{1,3}\d+\W|messages?\W{0,2}[.\[]\W*\d"


_PROSE = frozenset(("not", "if", "then", "else", "contains", "deprecated"))
"""Keywords that are also words of any sentence; these count only in quotation marks."""


def _names_keyword(keyword: str, text: str) -> bool:
    word = "_?".join(re.escape(part.lower()) for part in re.split(r"(?<=[a-z])(?=[A-Z])", keyword))
    mark = r"['\"`]" if keyword in _PROSE else ""
    return re.search(rf"(?<![a-z_]){mark}{word}{mark}(?![a-z_])", text) is not None


def _schema_steps(sent: Sent, text: str) -> Iterator[Step]:
    """The level that drops what is named, else the one without constraints; then all the way down."""
    wanted = max(
        (diet.level_that_drops(each) for each in diet.KEYWORDS if _names_keyword(each, text)), default=2
    )
    if _names_keyword("enum", text) and not re.search(r"\bstrings?\b", text):
        wanted = DEEPEST_DIET
    for level in sorted({wanted, 2, 3, 4}):
        if level >= wanted and level > sent.profile.schema_diet:
            yield f"schema_diet:{level}", {"schema_diet": level}
    yield to_text(sent)


def _grammar_steps(sent: Sent, text: str) -> Iterator[Step]:
    for level in (2, 4):
        if level > sent.profile.schema_diet:
            yield f"schema_diet:{level}", {"schema_diet": level}
    yield to_text(sent)


def _count_steps(sent: Sent, text: str) -> Iterator[Step]:
    """The number that is named and smaller than ours, else the next smaller usual cap."""
    count = len(sent.tools)
    named = [int(each) for each in re.findall(r"(?<![\w.])\d{1,4}(?![\w.]\d)", text)]
    caps = [each for each in named if 0 < each < count] or [
        each for each in (128, 64, 32, 16, 8) if each < count
    ]
    if caps:
        yield f"max_tools:{max(caps)}", {"max_tools": max(caps)}


def _has_empty_object(schema: JSON) -> bool:
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "object" and not schema.get("properties"):
        return True
    return any(map(_has_empty_object, _schemas_in(schema)))


def _schemas_in(schema: Mapping[str, JSON]) -> Iterator[JSON]:
    properties = schema.get("properties")
    yield from properties.values() if isinstance(properties, Mapping) else ()
    yield schema.get("items")
    for key in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(key) or ()


def _description_steps(sent: Sent, text: str) -> Iterator[Step]:
    """The length that is named, else the usual one; then no descriptions inside parameters either."""
    named = [int(each) for each in re.findall(r"(?<![\w.])\d{2,5}(?![\w.]\d)", text)]
    longest = max(map(len, sent.descriptions))
    cap = max((each for each in (*named, _USUAL_DESCRIPTION) if each < longest), default=None)
    if cap is not None:
        yield f"max_description:{cap}", {"max_description": cap}
    yield "schema_diet:4", {"schema_diet": DEEPEST_DIET}


_USUAL_DESCRIPTION = 1024

RULES = (
    Refusal(NO_CALL_PARSER, has_tools, or_text()),
    Refusal(
        pattern(
            near(
                r"\bdescriptions?\b",
                r"too long|exceed\w*|max\w*|at most|no more than|longer than|超过|过长",
                60,
            )
        ),
        lambda sent: bool(sent.descriptions),
        _description_steps,
    ),
    Refusal(
        pattern(near(r"\btool_?config\b|\btools\b(?: (?:field|param\w*|array))?", MISSING, 60)),
        lambda sent: has_calls(sent) and not has_tools(sent),
        always(("calls_need_tools:yes", {"calls_need_tools": True})),
    ),
    Refusal(
        pattern(
            near(
                r"\bproperties\b|\bparameters\b",
                r"non-?empty|not be empty|(?:is|are) empty|empty object",
                60,
            ),
            r"at least (?:one|1) propert",
        ),
        lambda sent: any(_has_empty_object(schema) for schema in sent.schemas),
        or_text(("no_properties:omit", {"no_properties": "omit"})),
    ),
    Refusal(
        pattern(
            r"unexpected empty grammar|\bgrammar\b|\bgbnf\b|\bsamplers?\b|structural[_ ]tag|xgrammar|llguidance"
        ),
        has_tools,
        _grammar_steps,
    ),
    Refusal(
        pattern(
            near(
                r"\b(?:tool|function)s?\b\W{0,4}(?:\w+\W{0,3}){0,3}\bname\b|\b(?:tool|function)_name\b",
                r"\bmust\b|\bshould\b|match|pattern|characters?|start|long|length|invalid|illegal|letters?|alphanum\w*",
            ),
            near(r"\bname\b", r"\^\[?[a-z_]|a-z"),
        ),
        has_tools,
        or_text(("names:strict", {"names": "strict"})),
        pattern(
            r"response\.name",
            r"\btool (?:message|result)s?\b",
            r"name\W+(?:cannot|must not|can't) be empty",
            r"tool[_ ]?call[_ ]?id",
        ),
    ),
    Refusal(
        pattern(
            near(
                r"\btools\b|\bfunctions\b|\bfunction declarations\b|\btool definitions\b",
                r"too many|at most|no more than|more than|exceed\w*|maximum (?:number|length|of)|max_?items"
                r"|array (?:is )?too long|too long|limited to|up to \d|limit of|过多|超过",
            ),
        ),
        lambda sent: len(sent.tools) > 1,
        _count_steps,
        pattern(r"\bcontext\b|\btokens\b|\bdescription\b"),
    ),
    Refusal(
        pattern(
            r"\bjson ?schema\b|\bschema\b|\$ref|\$defs|\$schema|any_?of\b|one_?of\b|all_?of\b|additional_?properties",
            r"function_?declarations?|exclusive_?m(?:in|ax)imum|pattern_?properties",
            r"(?:^|\n|\bat |\bin )['\"`]?tools?[^\w\n]{1,3}\d",
            r"fail\w* to (?:parse|read|validate|convert) (?:the )?(?:tools|functions)\b",
            r"fail\w* to (?:parse|read|validate|convert) (?:the )?(?:tool|function) (?:definition|schema)s?\b",
            r"['\"`]type['\"`] must be|parameters\W{1,3}(?:type|properties)\b",
            near(
                r"\btools?\b|\bfunctions?\b|\bparameters\b",
                r"(?<!additional )\bproperties\b|\benum\b|\bitems\b|\bformat\b|\bpattern\b|\bdefault\b|\bminimum\b"
                r"|\bmaximum\b|m(?:in|ax)_?(?:length|items)|\bconst\b|\btitle\b|\bexamples?\b|\bnullable\b"
                r"|\btype (?:should|must|has to|cannot)",
                120,
            ),
        ),
        lambda sent: bool(sent.schemas),
        _schema_steps,
        pattern(
            r"messages?\W{0,2}[.\[]\W*\d", r"response_format", r"under any of the given schemas - 'messages"
        ),
    ),
    Refusal(
        pattern(near(r"\bstream\w*", near(_TOOLS, REFUSED, 50), 50)),
        lambda sent: bool(sent.tools) and "stream" in sent.options,
        always(("stream_with_tools:no", {"stream_with_tools": False})),
        pattern(r"stream_options"),
    ),
)

# After all others: what is wrong with tools may be one of them.
LAST_RULES = (
    Refusal(
        pattern(
            near(_TOOLS, REFUSED, 50),
            r"(?:^|\n)(?:body\.)?(?:tools|functions): ",
            r"\b(?:remove|omit|drop|leave out|without)\b (?:the |any |your )?['\"`]?(?:tools|functions)\b",
            r"(?:\bno|\blacks?|\bwithout) (?:native )?(?:tool|function)[ _-]?(?:use|usage|call\w*)",
            r"support(?:s|ing)? tool",
            near(_TOOLS, r"\bjinja\b|\btemplate\b"),
        ),
        has_tools,
        or_text(),
        pattern(_INSIDE_TOOLS, UNREAD_CALL.pattern, r"invalid (?:tool|function) call"),
    ),
)
