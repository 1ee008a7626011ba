"""A change to a text as a unified diff, and where in a text something is nearly, but not exactly."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_CONTEXT = 3
_MAX_COMPARED = 3_000
"""Lines that are compared one by one. Beyond, comparing would take too long."""

_MAX_SEARCHED = 5_000
"""Lines among which the most similar one is looked for."""

_MAX_LINE = 300


def unified(old: list[str], new: list[str], name: str) -> str:
    """The change from `old` to `new` lines. "" if there is none; one hunk of all where it is too much to compare."""
    if old == new:
        return ""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(0, start - _CONTEXT)
    before, after = (lines[first : len(lines) - max(0, end - _CONTEXT)] for lines in (old, new))
    if len(before) + len(after) > _MAX_COMPARED:
        groups: Iterable[_Opcodes] = [[("replace", 0, len(before), 0, len(after))]]
    else:
        groups = _grouped(before, after)
    hunks = [line for group in groups for line in _hunk(group, before, after, first)]
    return "\n".join([f"--- {name}", f"+++ {name}", *hunks])


_Opcodes = Sequence[tuple[str, int, int, int, int]]


def _grouped(before: list[str], after: list[str]) -> Iterable[_Opcodes]:
    matcher = difflib.SequenceMatcher(None, before, after)
    return matcher.get_grouped_opcodes(_CONTEXT)


def _hunk(group: _Opcodes, before: list[str], after: list[str], first: int) -> Iterator[str]:
    (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
    yield f"@@ -{_span(first + i1, i2 - i1)} +{_span(first + j1, j2 - j1)} @@"
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            yield from (" " + line for line in before[a1:a2])
            continue
        yield from ("-" + line for line in before[a1:a2])
        yield from ("+" + line for line in after[b1:b2])


def _span(start: int, length: int) -> str:
    """A range as in a diff: counted from 1, and from 0 where it is empty."""
    begin = start + 1 if length else start
    return f"{begin}" if length == 1 else f"{begin},{length}"


def _common(one: list[str], other: list[str]) -> int:
    """How many lines at the start are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


# ── near misses ──────────────────────────────────────────────────────────────────────────────────────

_NUMBERED = re.compile(r"\s*\d+\t")
_ALIKE = str.maketrans({**dict.fromkeys('‘’‚‛“”„‟′″`"', "'"), **dict.fromkeys("‐‑‒–—―−", "-")})


def near_miss(wanted: str, text: str) -> str:
    """Where `text` has something like `wanted`, which is not in it, and how that differs. "" if nothing is near."""
    lines, sought = text.split("\n"), wanted.strip("\n").split("\n")
    if any(sought) and all(_NUMBERED.match(line) for line in sought if line):
        return "Your text has the line numbers of read_file in it; leave them and the tab behind them out."
    for fold, difference in _FOLDS:
        if found := _places(list(map(fold, lines)), list(map(fold, sought))):
            return f"Line {found[0] + 1} differs only in {difference}. The file has:\n" + _quoted(
                lines, found[0], len(sought)
            )
    return _most_similar(lines, sought)


def _spaces(line: str) -> str:
    return " ".join(line.split())


def _signs(line: str) -> str:
    return _spaces(unicodedata.normalize("NFKC", line).translate(_ALIKE))


def _cases(line: str) -> str:
    return _signs(line).casefold()


_FOLDS = (
    (_spaces, "white space"),
    (_signs, "the kind of quotes, dashes or spaces, or how letters are composed"),
    (_cases, "upper and lower case"),
)


def _places(lines: list[str], sought: list[str]) -> list[int]:
    """Where the lines stand; one line alone may be a part of one."""
    if len(sought) == 1:
        return [at for at, line in enumerate(lines) if sought[0] and sought[0] in line]
    if not any(sought):
        return []
    size = len(sought)
    return [at for at in range(len(lines) - size + 1) if lines[at : at + size] == sought]


def _most_similar(lines: list[str], sought: list[str]) -> str:
    """The place whose line is most like the first line sought that has any text."""
    offset = next((at for at, line in enumerate(sought) if line.strip()), None)
    if offset is None or len(lines) > _MAX_SEARCHED:
        return ""
    folded = [_spaces(line)[:_MAX_LINE] for line in lines]
    close = difflib.get_close_matches(_spaces(sought[offset])[:_MAX_LINE], folded, n=1, cutoff=0.6)
    if not close:
        return ""
    at = max(0, folded.index(close[0]) - offset)
    return f"The nearest is at line {at + 1}:\n" + _quoted(lines, at, len(sought))


def _quoted(lines: list[str], at: int, size: int) -> str:
    """Some lines of a file, with what does not show in them spelled out."""
    some = lines[at : at + min(size, 12)]
    return "\n".join("  " + repr(line[:_MAX_LINE])[1:-1] for line in some)
