"""Whether an error says that the conversation is longer than the model's window, and how large that is."""

from __future__ import annotations

import re

from glassloop.wire.said import Said
from glassloop.wire.vocabulary import near, pattern

_SMALLEST_WINDOW = 128
_N = r"(?<!by )(?<!\d)(\d{1,15}+(?:[,_]\d{3})*+)(?!\d)(?!(?:\.\d{1,9})?[a-z%])"
"""A number that is no rate and has no unit. It takes what belongs to it at once: digits without end cost no more."""
_LENGTH = (
    r"\bcontext\b|context_(?:length|window|size)|\bprompts?\b|\binputs?\b(?! should)|\bmessages\b|\bconversation\b|\bhistory\b"
    r"|(?:input|prompt|request|total)[ _]tokens?\b|\btoken (?:count|limit)\b|\btokens\b|上下文|输入|提示词"
)
_TOO_LONG = (
    r"exceed\w*|too (?:long|large|many|big)|(?:longer|greater|larger|more|bigger|higher) than|over the\b|\boverflow\w*|\boverruns?\b"
    r"|beyond|surpass\w*|ran out|does(?:n't| not) fit|not enough|limit reached|is full|超过|超出|超长|过长"
)
_ABOUT_LENGTH = pattern(
    near(_LENGTH, _TOO_LONG, 90),
    r"(?:maximum|max|model'?s?) (?:\w+ )?(?:context|prompt|input|sequence)[ _](?:length|size|window)",
    r"inputs?\W{0,2} tokens[^\n]{0,60}<=",
    r"max_?length:? \d+, actual:? \d+",
    near(
        r"(?:prompts?|inputs?|messages|request) (?:has|have|is|are|of|contains?|uses?|needs?|with)\b[^\d\n]{0,20}\d[\d,]* tokens?",
        r"\b(?:context|window)\b",
        40,
    ),
    near(_LENGTH, r"must (?:have|be) (?:less|fewer|at most|shorter|no more)", 40),
    r"prompt_tokens\b[^\n]{0,30}\bless than",
    r"reduce (?:the |your )?(?:length|size|prompt|message|input|context)|max_model_len|shorten (?:the|your)",
    r"range of input length|total length of (?:all )?(?:the )?messages|tokens_limit_reached|n_ctx|kv cache",
    r"(?:request entity|payload|content|body) (?:is )?too large",
    r"context[_ ](?:length|window|size)[_ ](?:exceeded|overflow|error)|exceed_context_size",
)
_ABOUT_SOMETHING_ELSE = pattern(
    near(r"\btools\b|\bfunctions\b", r"too many|at most|more than|maximum (?:number|length)", 40),
    r"\b(?:id|name|description|schema|pattern|enum|stop)s?\b[^\n]{0,25}(?:too long|too large|exceed|maximum)",
    r"\b(?:image|file|picture)s?(?: size| file)?(?: is| are)? (?:too large|too big|exceed)",
    r"string too long[^\n]{0,60}\b(?:64|40|9)\b",
    r"more than one|at most (?:one|1)\b",
    r"too many (?:images|files|messages per|stop)",
)

_WINDOWS = tuple(
    re.compile(each)
    for each in (
        rf">\s*{_N}\s*(?:max|\n|$|,|\)|\(|-|tokens)",
        rf"with {_N} max",
        rf"(?:maximum|max\.?)\b[^\d\n]{{0,60}}\bof {_N}",
        rf"(?:<=?|≤|(?:less|fewer) than)\s*(?:\w+ \()?{_N}",
        rf"max_(?:seq|model|context|input)_len(?:gth)?\s*\(\s*{_N}",
        rf"(?:context|prompt|input|sequence)[ _](?:length|window|size|limit)\b[^\n]{{0,80}}?\bis {_N}",
        rf"(?:context|prompt|input|sequence)[ _](?:length|window|size|limit)\b[^\d\n]{{0,40}}{_N}",
        rf"(?:maximum|max)\b[^\d\n]{{0,60}}{_N}",
        rf"\blimit\b[^\d\n]{{0,30}}{_N}",
        rf"\[\s*\d+\s*,\s*{_N}\s*\]",
        rf"(?:at most|up to|only|allows?|supports?)\b[^\d\n]{{0,30}}{_N}",
        rf"(?:exceed\w*|than|over|beyond|超过|超出)[^\d\n]{{0,60}}{_N}",
        rf"(?:最大|上限|限制)[^\d\n]{{0,20}}{_N}",
    )
)
_PROMPTS = tuple(
    re.compile(each)
    for each in (
        rf"{_N}\s*\+\s*[\d,]+\s*>",
        rf"{_N}\s*(?:tokens?\s*)?(?:in|from|of|for) (?:the |your )?(?:messages?|text input|input|prompt)",
        rf"{_N}\s*[`'\"]?(?:input|prompt|inputs)[`'\"]?[ _]tokens?",
        rf"(?:prompt|messages|input)\b[^\d\n]{{0,40}}{_N}\s*(?:input )?tokens",
    )
)
_TOTALS = (
    re.compile(rf"\brequest(?:ed|s)?\b[^\d\n]{{0,30}}{_N}"),
    re.compile(rf"\b(?:total|sum)\b[^\d\n]{{0,40}}{_N}"),
)
"""What prompt and answer would come to together."""
_ERROR_CODE = re.compile(r"(?<=[^\d\s]) \(\d{4}\)(?=\s*(?:[\n\"'.]|$))")
"""At a sentence's end: MiniMax's "(2013)". To miss a window costs little; a false one would be kept."""
_PER_TIME = re.compile(
    rf"\blimit\b:?\s*{_N}[^\n]{{0,40}}\brequested\b:?\s*{_N}|\brequested\b:?\s*{_N}[^\n]{{0,40}}\blimit\b:?\s*{_N}"
)


def is_overflow(text: str, status: int | None) -> bool:
    """Whether lower-cased `text` says so; a 413 always does."""
    if status == 413:
        return True
    return _ABOUT_LENGTH.search(text) is not None and _ABOUT_SOMETHING_ELSE.search(text) is None


def never_fits(text: str) -> int | None:
    """The limit per minute that one request alone goes beyond. Waiting cannot help against it."""
    match = _PER_TIME.search(text)
    if not match:
        return None
    limit, requested = (
        (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
    )
    return _number(limit) if _number(requested) > _number(limit) and "used" not in match.group(0) else None


def window_of(words: Said, text: str) -> int | None:
    """The window in tokens, from a field of the body or from the text, if it is named."""
    stated = words.value("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length")
    if isinstance(stated, int) and stated >= _SMALLEST_WINDOW:
        return stated
    return _first(_WINDOWS, _ERROR_CODE.sub("", text))


def is_of_context(window: int | None, text: str) -> bool:
    """Whether the text calls this number the size of the context, which prompt and answer share."""
    if window is None:
        return False
    return (
        re.search(rf"{_CONTEXT}[^\n]{{0,60}}?(?<![\d,])(?:{window}|{window:,})(?![\d,]*\d)", text) is not None
    )


def names_only(window: int, asked: float, text: str) -> bool:
    """Whether this is the size of the context and no other number in the text is as large, but what was `asked` for:
    then nothing says that the prompt alone is too long."""
    numbers = {_number(each) for each in re.findall(_N, text)} - {window, int(asked)}
    return is_of_context(window, text) and max(numbers, default=0) < window


_CONTEXT = r"(?:(?:context|sequence)[ _](?:length|window|size|limit)|上下文)"


def prompt_of(text: str, asked: float) -> int | None:
    """The length of the prompt in tokens, where the text tells it from the `asked` length of the answer, or tells
    the sum of both."""
    if (prompt := _first(_PROMPTS, text)) is not None:
        return prompt
    total = _first(_TOTALS, text)
    return total - int(asked) if total and total > asked else None


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for each in patterns:
        for match in each.finditer(text):
            if (number := _number(match.group(1))) >= _SMALLEST_WINDOW:
                return number
    return None


def _number(text: str) -> int:
    return int(re.sub(r"[,_]", "", text))
