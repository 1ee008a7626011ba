"""Text and back without loss, in any encoding; globs and .gitignore against the real git; diffs that patch."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassloop.tools.builtin.files_diff import unified
from glassloop.tools.builtin.files_glob import expanded, is_ignored, matches, matches_name, rules_of
from glassloop.tools.builtin.files_text import NotText, decode
from glassloop.tools.builtin.files_write import replaced

# ── encodings ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "encoding", "described"),
    [
        ("plain\n", "ascii", ""),
        ("你好\n", "utf-8", ""),
        ("你好\n", "utf-8-sig", "UTF-8 with a byte order mark"),
        ("你好，世界。\n", "gb18030", "GB 18030"),
        ("a comment: 中文注释\nx = 1\n", "gbk", "GB 18030"),
        ("déjà vu, été, Zürich\n", "cp1252", "Windows-1252"),
        ("naïve “quotes” – and €\n", "cp1252", "Windows-1252"),
        ("hi\r\n", "utf-16", "UTF-16-LE, CRLF line ends"),
        ("hi\n", "utf-32", "UTF-32-LE"),
        ("a\r\nb\r\nc\n", "ascii", "CRLF line ends"),
        ("a\rb\r", "ascii", "CR line ends"),
    ],
)
def test_an_encoding_is_told_from_the_bytes(text: str, encoding: str, described: str) -> None:
    document = decode(text.encode(encoding))
    assert (document.text, document.described) == (text, described)
    assert document.encoded(document.text) == text.encode(encoding)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_come_back_as_they_were(data: bytes) -> None:
    try:
        document = decode(data)
    except NotText:
        return
    assert document.encoded(document.text) == data


ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LETTERS = {
    "utf-8": st.characters(exclude_categories=["Cs", "Cc"]),
    "utf-8-sig": st.characters(exclude_categories=["Cs", "Cc"]),
    "utf-16": st.characters(exclude_categories=["Cs", "Cc"]),
    "ascii": st.characters(min_codepoint=32, max_codepoint=126),
    "gb18030": st.sampled_from("你好世界项目预算abc ,。"),
    "cp1252": st.sampled_from("aeiou éàüß€ .,"),
}
CERTAIN = ("utf-8", "utf-8-sig", "utf-16", "ascii")


@settings(max_examples=120)
@given(st.sampled_from(sorted(LETTERS)), ENDS, st.data())
def test_an_edit_keeps_every_byte_outside_what_it_replaces(
    encoding: str, end: str, data: st.DataObject
) -> None:
    lines = st.lists(
        st.text(LETTERS[encoding], max_size=8).filter(lambda text: "TARGET" not in text), max_size=4
    )
    before, after = end.join(data.draw(lines)), end.join(data.draw(lines))
    new = "\n".join(data.draw(lines)) + "+"
    multi_line = data.draw(st.booleans())
    old, on_disk = ("TAR\nGET", f"TAR{end}GET") if multi_line else ("TARGET", "TARGET")
    original = (before + on_disk + after).encode(encoding)
    document = decode(original)
    written = new.replace("\n", document.line_end).encode(document.encoding, "replace")
    expected = original.replace(on_disk.encode(document.encoding), written, 1)
    try:
        result = document.encoded(replaced(document, old, new, 1, "it"))
    except (LookupError, ValueError):  # guessed otherwise: then nothing is written
        assert encoding not in CERTAIN
        return
    assert result == expected


@given(st.text(st.sampled_from("ab\r\n")), st.text(st.sampled_from("ab\r\n"), min_size=1), st.text("xy\n"))
def test_in_mixed_line_ends_a_replacement_leaves_all_else_as_it_was(text: str, old: str, new: str) -> None:
    document = decode(text.encode())
    try:
        result = replaced(document, old, new, 1, "it")
    except LookupError:
        return
    inserted = new.replace("\n", document.line_end)
    cuts = [at for at in range(len(text) + 1) if result.startswith(text[:at] + inserted)]
    assert any(
        result[at + len(inserted) :] == text[len(text) - (len(result) - at - len(inserted)) :] for at in cuts
    )


# ── globs ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "name", "taken"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a.pyc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[]]x", "]x", True),
        ("[a", "[a", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("*会*", "项目会议.md", True),
        ("", "", True),
        ("*", "", True),
        ("**", "abc", True),
    ],
)
def test_a_name_is_matched_as_a_whole(pattern: str, name: str, taken: bool) -> None:
    assert matches_name(pattern, name) is taken


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/test_*", "a/test_b", True),
        ("**", "a/b", True),
        ("a/**/b/**/c", "a/x/b/y/b/c", True),
        ("a/**/b/**/c", "a/x/c", False),
    ],
)
def test_two_stars_stand_for_any_folders(pattern: str, path: str, taken: bool) -> None:
    assert matches(tuple(pattern.split("/")), tuple(path.split("/"))) is taken


def test_a_pattern_made_to_take_for_ever_answers() -> None:
    assert not matches_name("*a" * 200 + "b", "a" * 200_000)
    assert not matches(("**", "a") * 100 + ("b",), ("a",) * 500)


def test_braces_stand_for_each_choice_and_not_for_too_many() -> None:
    assert sorted(expanded("{a,b}/*.{x,y}")) == ["a/*.x", "a/*.y", "b/*.x", "b/*.y"]
    assert expanded("a{b") == ["a{b"]
    with pytest.raises(ValueError, match="more than 64"):
        expanded("{a,b}" * 10)


RULES = [
    "*.log",
    "/top.txt",
    "build/",
    "docs/*.md",
    "!keep.log",
    "**/deep/x",
    "a/**/z",
    "p/**",
    "*/**/",
    "# comment",
    "",
    "te?t",
    "[ab].c",
]
FILES = ["x.log", "keep.log", "sub/x.log", "top.txt", "sub/top.txt", "build/a", "sub/build/b", "docs/a.md", "docs/sub/b.md",
         "deep/x", "p/q/deep/x", "a/z", "a/b/c/z", "test", "tet", "a.c", "c.c", "sub/keep.log"]  # fmt: skip


@settings(max_examples=15)
@given(st.lists(st.sampled_from(RULES), min_size=1, max_size=6))
def test_what_is_ignored_is_what_git_ignores(lines: list[str]) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed, and it is what this is compared with")
    rules = rules_of("\n".join(lines), ())
    ours = {file for file in FILES if _ignored(rules, tuple(file.split("/")))}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        Path(folder, ".gitignore").write_text("\n".join(lines))
        asked = ["git", "-C", folder, "-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin"]
        told = subprocess.run(asked, input="\n".join(FILES), text=True, capture_output=True).stdout
    assert ours == set(told.split())


def _ignored(rules: tuple, path: tuple[str, ...]) -> bool:
    ends = range(1, len(path) + 1)
    return any(is_ignored(rules, path[:end], is_folder=end < len(path)) for end in ends)


# ── diffs ────────────────────────────────────────────────────────────────────────────────────────────

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "long line"]), max_size=30)


@given(LINES, LINES)
def test_a_diff_applied_to_the_old_lines_gives_the_new_ones(old: list[str], new: list[str]) -> None:
    assert patched(old, unified(old, new, "x")) == new


def test_the_diff_of_two_texts_too_long_to_compare_is_one_hunk_of_all() -> None:
    old, new = [str(number) for number in range(4_000)], [str(number) for number in range(4_000, 0, -1)]
    diff = unified(old, new, "x")
    assert diff.count("@@ -") == 1
    assert patched(old, diff) == new


def patched(old: list[str], diff: str) -> list[str]:
    """Apply a unified diff, checking that its context is where it says."""
    result: list[str] = []
    at = 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            start, _, length = line.split(" ")[1][1:].partition(",")
            begin = int(start) - (length != "0")
            result += old[at:begin]
            at = begin
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert old[at] == line[1:]
            result += [old[at]] if line.startswith(" ") else []
            at += 1
    return result + old[at:]
