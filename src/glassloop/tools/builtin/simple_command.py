"""Command lines, read without running them: which are so simple that they need no shell, and what else a text holds.

A *simple* command is a program and its words. Everything by which a shell could make something else of the text
(operators, expansions, redirects, assignments, globs, comments, its own commands) makes it not simple. Where this
reader is in doubt, the text is not simple: then a shell runs it, and a person was asked. Rules judge words, never
text. Grammar: POSIX.1-2024, Shell Command Language, and bash(1) where it knows more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from glassloop.core.visible import INVISIBLE

MAX_LENGTH = 20_000

_SPECIAL = frozenset("|&;<>()$`*?[]{}!\n\r")
"""Never in a simple command outside quotes."""
_EXPANDED_IN_QUOTES = frozenset("$`")
_ESCAPED_IN_QUOTES = frozenset('$`"\\')

# What a shell does itself: it changes the shell's state, starts something else, or is a word of its grammar.
_SHELL_OWN = frozenset(
    "if then else elif fi case esac for select while until do done in function time coproc"
    " . : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown"
    " enable eval exec exit export fc fg getopts hash help history jobs kill let local logout mapfile popd pushd"
    " read readarray readonly return set shift shopt source suspend times trap type typeset ulimit umask unalias"
    " unset wait".split()
)
_PROGRAM = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@:,-]*")


def simple_words(text: str) -> tuple[str, ...] | None:
    """The words of a simple command, the program first; None for anything else."""
    if len(text) > MAX_LENGTH or any(_is_odd(char) for char in text):
        return None
    words = _words(text)
    if not words or not _PROGRAM.fullmatch(words[0]) or words[0] in _SHELL_OWN:
        return None
    return words


def _is_odd(char: str) -> bool:
    """Characters that a person does not see, or that some shell may take for a blank."""
    if char in " \t" or (char.isascii() and char.isprintable()):
        return False
    return char in _BLANK_LOOKING or bool(INVISIBLE.match(char)) or unicodedata.category(char) in _ODD_KINDS


_BLANK_LOOKING = "\u2800\u3164"
_ODD_KINDS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")


def _words(text: str) -> tuple[str, ...] | None:
    """Split and unquoted; None at the first thing that only a shell understands."""
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t":
            if word is not None:
                words.append(word)
            word, at = None, at + 1
            continue
        piece = _piece(text, at, word)
        if piece is None:
            return None
        added, at = piece
        word = (word or "") + added
    return tuple(words if word is None else [*words, word])


def _piece(text: str, at: int, word: str | None) -> tuple[str, int] | None:
    """The next characters of a word, unquoted, and where they end."""
    match text[at]:
        case "'":
            end = text.find("'", at + 1)
            return (text[at + 1 : end], end + 1) if end > 0 else None
        case '"':
            return _in_double_quotes(text, at + 1)
        case "\\":
            return (text[at + 1], at + 2) if at + 1 < len(text) else None
        case "#" if word is None:
            return None
        case "~" if not word or word[-1] in "=:":
            return None
        case char if char in _SPECIAL:
            return None
        case char:
            return char, at + 1


def _in_double_quotes(text: str, at: int) -> tuple[str, int] | None:
    inside = ""
    while at < len(text):
        char = text[at]
        if char == '"':
            return inside, at + 1
        if char in _EXPANDED_IN_QUOTES:
            return None
        if char == "\\" and text[at + 1 : at + 2] in _ESCAPED_IN_QUOTES:
            at += 1
            char = text[at : at + 1]
        inside += char
        at += 1
    return None


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────

ANY_MORE = "..."

# Options that write a file of one's choice, run a program, or read settings elsewhere. `...` never stands for them:
# who wants one writes it into the rule. Programs take shortened names (`--outp`), so a beginning counts. This is a
# net and no wall: it cannot know all programs. The wall is the sandbox.
_GRAVE = (
    "output output-file output-document output-dir output-directory exec exec-path exec-batch ext-diff textconv"
    " open-files-in-pager upload-pack receive-pack config config-env config-file git-dir work-tree command"
    " to-command use-compress-program checkpoint-action rsh rsh-command pager pre preprocessor proxy-command editor"
    " template post-file upload-file plugin load compress-program info-script new-volume-script unzip-command"
    " hostname-bin use-askpass script-shell python-executable toolexec rcfile init-file eval rulesdir parser"
    " resolve-plugins-relative-to to-file in-place write"
).split()
_GRAVE_SHORT = frozenset("oO")
_GRAVE_SINGLE_DASH = (
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
)


_GRAVE_OF: Mapping[tuple[str, ...], str] = {
    ("curl",): "dFKT",
    ("eslint",): "cf",
    ("fd",): "xX",
    ("fdfind",): "xX",
    ("git", "clone"): "cu",
    ("git", "rebase"): "x",
    ("make",): "fE",
    ("man",): "HP",
    ("pytest",): "cp",
    ("rsync",): "e",
    ("sed",): "fi",
    ("ssh",): "FSJ",
    ("tar",): "FI",
    ("zip",): "T",
}
"""Letters that mean such an option to one program and something harmless to most others."""

_GRAVE_WORDS: Mapping[tuple[str, ...], frozenset[str]] = {
    ("git",): frozenset(
        "bisect config credential daemon difftool filter-branch hook instaweb mergetool submodule".split()
    ),
    ("git", "bisect"): frozenset(("run",)),
    ("git", "submodule"): frozenset(("foreach",)),
}
"""Subcommands that run what they are told, or change what the program runs later."""

_WITH_SUBCOMMANDS = frozenset(
    "git hg svn jj gh glab npm pnpm yarn cargo go pip poetry docker podman kubectl helm terraform systemctl"
    " journalctl apt dnf brew conda mvn gradle bundle gem composer dotnet aws gcloud az".split()
)


@dataclass(frozen=True, slots=True)
class CommandRule:
    """Commands that begin with exactly these words, or are exactly these (`more` is False)."""

    words: tuple[str, ...]
    more: bool = False


def command_rule(text: str) -> CommandRule:
    """`git status`: exactly this. `git diff ...`: also with any further words, save grave options.

    Raises `ValueError` for a rule that no simple command could match.
    """
    words = simple_words(text)
    more = bool(words) and words is not None and words[-1] == ANY_MORE
    given = words[:-1] if words and more else words
    if not given or ANY_MORE in given:
        raise ValueError(
            f"{text!r} is no rule for a command. Write a program and its words, as in `git status`,"
            f" and `{ANY_MORE}` at the end where more may follow"
        )
    return CommandRule(given, more)


def allows(rule: CommandRule, words: tuple[str, ...]) -> bool:
    """Whether the rule covers this simple command."""
    if not rule.more:
        return words == rule.words
    size = len(rule.words)
    more = words[size:]
    if words[:size] != rule.words or any(is_grave(word, _letters_of(words)) for word in more):
        return False
    if not _GRAVE_WORDS.get(rule.words, frozenset()).isdisjoint(more[:1] if size == 1 else more):
        return False
    # What stands before the subcommand configures the program itself: `git -c`, `docker -H`.
    return not (size == 1 and words[0] in _WITH_SUBCOMMANDS and more[:1] and more[0].startswith("-"))


def _letters_of(words: tuple[str, ...]) -> frozenset[str]:
    return _GRAVE_SHORT.union(*(_GRAVE_OF.get(words[:size], "") for size in (1, 2)))


def mentions(rule: CommandRule, text: str) -> bool:
    """Whether the rule's words stand anywhere in a command line, simple or not: for what is to be denied or asked.

    Quotes, letters of either case, paths to programs, what runs a program and options before a subcommand are looked
    through. A net, as above: a shell can spell a word in ways that only a shell understands.
    """
    wanted = [word.casefold() for word in (_program(rule.words[0]), *rule.words[1:])]
    return any(_stands_in(words, wanted) for words in _readings(text.casefold()))


_JOINS = re.compile(r"\\\r?\n|[\"'\\]")
_EXPANDS_TO_NOTHING = re.compile(r"\$(?:\{\w*\}|[@*\w])")
_BETWEEN = re.compile(r"[^\w./+@:=%~-]+")


def _readings(text: str) -> Iterator[list[str]]:
    """The words that may be in a text: quotes taken away, expansions left out, and as a simple command."""
    joined = _JOINS.sub("", text)
    yield _BETWEEN.split(joined)
    yield _BETWEEN.split(_EXPANDS_TO_NOTHING.sub("", joined))
    yield list(simple_words(text) or ())


def _stands_in(words: list[str], wanted: list[str]) -> bool:
    program, *rest = wanted
    return any(
        words[at : at + len(rest)] == rest
        for found, word in enumerate(words)
        if _program(word) == program
        for at in _after_options(words, found + 1)
    )


def _after_options(words: list[str], at: int) -> Iterator[int]:
    """Where a subcommand may stand: here, or behind options, each of which may have a value."""
    yield at
    while at < len(words) and words[at].startswith("-"):
        at += 1
        yield at
        if at < len(words) and not words[at].startswith("-"):
            at += 1
            yield at


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def is_grave(word: str, letters: frozenset[str] = _GRAVE_SHORT) -> bool:
    """Whether the word may be an option that writes, runs or redirects. After `--` it is judged all the same.

    `letters`: those of short options that may.
    """
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return bool(name) and any(grave.startswith(name) for grave in _GRAVE)
    if not word.startswith("-"):
        return False
    return word in _GRAVE_SINGLE_DASH or not letters.isdisjoint(re.split(r"[^A-Za-z]", word[1:])[0])


# ── for people ───────────────────────────────────────────────────────────────────────────────────────

_BORDER = r"\$\( | [<>]\( | ` | \|& | \|\| | && | ;;&? | ;& | [|&;()\n\r]"
_COPIED = r"\d*[<>]&[\d-]* | &>>?"  # a descriptor, not the end of a command
_QUOTED = r"'[^']*' | \"[^\"]*\""
_ANYWHERE = re.compile(rf"(?:{_COPIED}) | (?P<border>{_BORDER})", re.VERBOSE)
_OUTSIDE_QUOTES = re.compile(rf"(?:{_QUOTED} | {_COPIED}) | (?P<border>{_BORDER})", re.VERBOSE)
_MUDDLES_QUOTES = re.compile(r"[$`\\#] | <<", re.VERBOSE)


def commands_in(text: str) -> tuple[str, ...]:
    """Every command of a text, those inside substitutions too, in the order in which they stand; nothing is dropped.

    For showing; it decides nothing. Where only a shell can tell what is quoted (escapes, expansions, comments,
    here-documents), quotes are not believed: it shows more commands than there are rather than fewer.
    """
    borders = _ANYWHERE if _MUDDLES_QUOTES.search(text) else _OUTSIDE_QUOTES
    pieces, last = [], 0
    for found in borders.finditer(text):
        if found["border"]:
            pieces.append(text[last : found.start()])
            last = found.end()
    pieces.append(text[last:])
    return tuple(piece for piece in (piece.strip(" \t\"'{}") for piece in pieces) if piece)
