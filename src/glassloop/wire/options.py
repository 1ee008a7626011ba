"""What to change when an endpoint refuses an optional request field, or the value that was sent under it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glassloop.wire.mistakes import is_mistaken
from glassloop.wire.profile import OUTPUT_LIMITS
from glassloop.wire.rule import Step
from glassloop.wire.sent import Sent
from glassloop.wire.vocabulary import MISSING, NO_CALL_PARSER, REFUSED, named, near, pattern

_ASKED_WHERE_REQUIRED = 4096

_EVERYDAY_WORDS = frozenset(
    "user stop n store models reasoning thinking provider metadata stream prompt text input modalities audio route"
    " background plugins transforms prediction seed".split()
)
"""Field names that are also words of prose; these count only where they are marked as a name."""

_OUTPUT = (
    r"\b(?:completion|output|generated|new)[ _]?tokens\b|\bmax(?:imum)?[ _](?:output|new|completion)[ _]?\w*"
    r"|\bmaximum tokens (?:you requested|value|parameter|setting)"
)
_ALIASES = {
    **dict.fromkeys(OUTPUT_LIMITS, _OUTPUT),
    "response_format": r"\bjson[ _]mode\b|json_object|json_schema|structured outputs?",
}
"""What a field is also called; only looked for where no field is named."""
_NUMBER = re.compile(r"(?<![\w.\-])-?(?:\d{1,3}(?:[,_]\d{3})+|\d{1,15})(?:\.\d{1,9})?(?![\w])")
_TOOL_CHOICES = re.compile(
    r"['\"`]?\b(?:auto|none|any|required)\b['\"`]?(?:\s*(?:,|\||/|or|and|、|或)\s*(?:or\s+|and\s+)?['\"`]?\b(?:auto|none|any|required|function)\b['\"`]?)+"
)


def option_steps(sent: Sent, text: str, *, param: str, is_refusal: bool) -> Iterator[Step]:
    """Every change to optional fields that the error text suggests. `text` is lower-cased.

    `param` is the field that the body itself names. `is_refusal`: the status says that the request was at
    fault (400, 422), so that naming a field is enough; else the words must refuse it too.
    """
    text = _HINT.sub(" ", text)
    fields = [field for field in sent.options if field != "tool_choice" and _names(field, text, param)]
    if not fields:
        fields = [
            field for field, words in _ALIASES.items() if field in sent.options and re.search(words, text)
        ]
    if not is_refusal and not re.search(REFUSED, text):
        return
    if len(fields) > 1:
        yield from _several(fields, text)
    for field in fields:
        yield from _field_steps(sent, field, text)


def mistaken_fields(sent: Sent, text: str, *, param: str) -> list[str]:
    """The options that the error text is about, and that no endpoint could take as they were set.

    `text` and `param` as in `option_steps`. An endpoint that does not know the field says nothing of its value.
    """
    if not _ABOUT_VALUE.search(text) or _ABOUT_FIELD.search(text):
        return []
    return [
        field
        for field, value in sent.options.items()
        if is_mistaken(field, value) and field not in sent.profile.set_fields and _names(field, text, param)
    ]


_ABOUT_VALUE = pattern(
    r"\btype\b|\b(?:in)?valid\b|\bexpect|\bmust be\b|\bshould be\b|\bpars(?:e|ing)\b|convert|unmarshal|deserializ",
    r"\bbetween\b|\brange\b|at least|at most|too (?:small|low|few|large|high)|greater|less than|[<>≤≥]|\bone of\b|\bvalues?\b",
    r"不合法|非法|无效|错误|范围",
)
_ABOUT_FIELD = pattern(
    r"unsupported(?! value)|not (?:\w+ )?support|n't support|unknown(?! variant)|unrecogni[sz]ed|\bextra\b|permitted|allowed"
    r"|forbidden|\bunset\b|combin|together|incompatible|conflict|no longer|deprecated|removed?\b|available|unexpected (?:key|field|param|arg|prop)|additional prop|不支持|未知",
)


def placed_steps(sent: Sent, text: str) -> Iterator[Step]:
    """What is refused in a line of its own that begins with the field ("body.seed: Extra inputs …")."""
    for field in sent.options:
        line = rf"(?:^|\n)(?:body\.)?{re.escape(field)}: [^\n]*{REFUSED}"
        if field != "tool_choice" and re.search(line, text):
            yield from option_steps(sent, text, param=field, is_refusal=True)
            return


_HINT = re.compile(r"did you mean[^\n?]*\??")
"""What a server guesses that we meant is no complaint about it."""
_ONE_OF_THEM = pattern(
    r"cannot both|can't both|not both|both (?:be )?(?:set|specified|provided)|only one of|mutually exclusive|at the same time",
    r"use only one|either\b[^\n]{0,60}\bor\b|simultaneous|together with|in combination|不能同时|互斥",
)
_KEPT = ("temperature", "max_completion_tokens", "max_tokens")
"""Of fields that exclude each other, the first of these stays, else the first that was set."""


def _several(fields: list[str], text: str) -> Iterator[Step]:
    """Fields that exclude each other: all but one go. Fields that are refused in one breath go in one step."""
    if _ONE_OF_THEM.search(text):
        stays = next((each for each in _KEPT if each in fields), fields[0])
        gone = [each for each in fields if each != stays]
    else:
        gone = [each for each in fields if _refused_by_name(each, text)]
        if len(gone) < 2:
            return
    yield f"drop:{','.join(gone)}", {"drop_fields": gone}


def _refused_by_name(field: str, text: str) -> bool:
    """Whether a line names the field and refuses it, or names it in a list of what it refuses."""
    name = named(field)
    listed = rf"(?:{REFUSED})[^\n]{{0,40}}[\[(:][^\n\])]{{0,200}}{name}"
    return re.search(f"{near(name, REFUSED, 40)}|{listed}", text) is not None


def _names(field: str, text: str, param: str) -> bool:
    if param and re.split(r"[.\[]", param.lower())[0] == field:
        return True
    if field not in _EVERYDAY_WORDS:
        return re.search(named(field), text) is not None
    name = re.escape(field)
    marks = (
        rf"['\"`]{name}['\"`.\[]",
        rf"(?:->\s?|body\.|: ){name}(?![\w ]*\w)",
        rf"(?:^|[,:;] ){name}(?::| is\b| must\b| should\b| cannot\b| can't\b)",
        rf"(?:parameter|field|argument|property|option)s? {name}\b",
        rf"\b{name} (?:parameter|field|argument|option)",
        rf"\b{name}\s?[=>]",
    )
    return re.search("|".join(marks), text, re.MULTILINE) is not None


_ONLY_STREAMED = pattern(
    r"only supports? (?:the )?stream",
    r"stream\w* (?:mode )?(?:is )?(?:required|only)",
    near(r"non-?stream\w*", REFUSED, 40),
    r"enable the stream",
    r"stream['\"`]? must be (?:set to )?true",
    near(r"\bstream\s*[=:]\s*['\"]?false", REFUSED, 60),
    r"仅支持流式|只支持流式",
)


_FIELD = r"(?<![.\w])(?:parameter\.)?['\"`]?([a-z]+(?:_[a-z]+)+)['\"`]?"
_VALUE = r"['\"`]?(true|false|none|auto|low|medium|high|minimal)(?![a-z])"
_DEMANDS = (
    re.compile(rf"{_FIELD} (?:must|should|has to|needs to) be (?:set to |equal to )?{_VALUE}"),
    re.compile(rf"\bset {_FIELD} (?:to|=) {_VALUE}"),
    re.compile(rf"{_FIELD}\s*(?:必须|应该?|需要?)\s*(?:被)?(?:设置?|设定)?(?:为|成|是)\s*{_VALUE}"),
)
_TRUTH = {"true": True, "false": False}


def demanded_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Fields that we did not send, or not so, and that the endpoint insists on."""
    for demand in _DEMANDS:
        for field, value in demand.findall(text):
            if field not in sent.profile.set_fields and field not in ("tool_choice", *OUTPUT_LIMITS):
                yield f"set_fields:{field}", {"set_fields": {field: _TRUTH.get(value, value)}}
    if "stream" not in sent.options and _ONLY_STREAMED.search(text):
        yield "stream_only:yes", {"stream_only": True}
    if any(field in sent.options for field in OUTPUT_LIMITS):
        return
    if any(re.search(near(named(field), MISSING, 40), text) for field in OUTPUT_LIMITS):
        yield f"max_output:{_ASKED_WHERE_REQUIRED}", {"max_output": _ASKED_WHERE_REQUIRED}


def tool_choice_steps(sent: Sent, text: str) -> Iterator[Step]:
    """Another spelling that the text allows, then a weaker wish, then none."""
    if "tool_choice" not in sent.options or NO_CALL_PARSER.search(text):
        return
    choices = _TOOL_CHOICES.findall(text)
    if not choices and not re.search(named("tool_choice"), text):
        return
    sent_choice = sent.options["tool_choice"]
    key = sent_choice if isinstance(sent_choice, str) else "function"
    wish = next((each for each, spelled in sent.profile.tool_choice.items() if spelled == key), key)
    allowed = set(re.findall(r"[a-z]+", max(choices, key=len))) if choices else set()
    weaker = {"function": ("required", "any"), "required": ("any", "required"), "any": ("required",)}
    for spelling in weaker.get(key, ()):
        if spelling in allowed and spelling != key:
            yield f"tool_choice:{wish}:{spelling}", {"tool_choice": {wish: spelling}}
    if key == "function" and not allowed:
        yield "tool_choice:function:required", {"tool_choice": {"function": "required"}}
    yield "drop:tool_choice", {"drop_fields": ["tool_choice"]}


def _field_steps(sent: Sent, field: str, text: str) -> Iterator[Step]:
    """Clamp a number that is out of range; send it under another name; do not send it."""
    if field == "stream":
        if not _ONLY_STREAMED.search(text):
            yield "stream:no", {"stream": False}
        return
    if field == "stream_options":
        yield "drop:stream_options", {"stream_options": False, "drop_fields": ["stream_options"]}
        return
    value = sent.number(field)
    if value is not None and (clamped := _clamp(field, value, text)) is not None:
        yield clamped
    yield from _renamed(sent, field, text)
    yield f"drop:{field}", {"drop_fields": [field]}


def _clamp(field: str, value: float, text: str) -> Step | None:
    """The nearest bound that the text names. A number that is the only one allowed is no bound."""
    if re.search(r"\bonly\b[^\n]{0,30}\b(?:allowed|supported|accepted|valid|default)|fixed", text):
        return None
    numbers = [number for each in _NUMBER.findall(text) if (number := _as_number(each)) != value]
    if field in OUTPUT_LIMITS:
        numbers = [each for each in numbers if each >= 16 and each == int(each)]
    above = [each for each in numbers if each > value]
    below = [each for each in numbers if each < value]
    code = f"clamp:{field}"
    if re.search(_TOO_LOW, text) and above:
        return f"{code}:{min(above):g}", {"min_values": {field: _tidy(min(above))}}
    if re.search(_TOO_HIGH, text) and below:
        return f"{code}:{max(below):g}", {"max_values": {field: _tidy(max(below))}}
    if re.search(_RANGE, text) and numbers:
        if below and max(below) >= 0 and not above:
            return f"{code}:{max(below):g}", {"max_values": {field: _tidy(max(below))}}
        if len(above) > 1:
            return f"{code}:{min(above):g}", {"min_values": {field: _tidy(min(above))}}
    return None


_TOO_HIGH = r"<=|≤|less than|at most|maximum|\bmax\b|exceed\w*|too (?:large|high|big)|above|up to|no more than|cannot be (?:greater|larger|more)|limit|不能大于|超过|最大"
_TOO_LOW = (
    r">=|≥|greater than or equal|at least|minimum|\bmin\b|too (?:small|low)|below|no less than|不能小于|最小"
)
_RANGE = r"\brange\b|between|\[\s*-?[\d.]+\s*,|\(\s*-?[\d.]+\s*,|范围|区间"


def _as_number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


def _tidy(number: float) -> float:
    return int(number) if number == int(number) else number


def _renamed(sent: Sent, field: str, text: str) -> Iterator[Step]:
    if field in sent.profile.rename_fields.values():
        return
    suggested = re.search(
        r"(?:\buse|\btry|\bspecify|\bset|replaced (?:by|with)|in favou?r of|请使用)[\s:]+['\"`]?([a-z]+(?:_[a-z]+)+)",
        text,
    )
    other = suggested.group(1) if suggested else ""
    if field in OUTPUT_LIMITS and other in ("", field) and re.search(REFUSED, text):
        other = next(each for each in OUTPUT_LIMITS if each != field)
    if other and other != field and other not in sent.options:
        yield f"rename:{field}", {"rename_fields": {field: other}}
