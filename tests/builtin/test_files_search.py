"""Finding files by name and text in them, with and without ripgrep."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from glassloop.tools.builtin import files_search, rooted_walk
from glassloop.tools.builtin.files_ripgrep import ripgrep
from glassloop.tools.builtin.files_search import MAX_FILE, find_files, search_files
from glassloop.tools.builtin.rooted import root_at
from glassloop.tools.builtin.rooted_names import Refused, Root

NO_RIPGREP = "ripgrep (rg) is not installed"
needs_ripgrep = pytest.mark.skipif(not shutil.which("rg"), reason=NO_RIPGREP)


TREE = {
    "README.md": "# Glass\n\nAll about glass.\n",
    "src/main.py": "import os\n\n\ndef main():\n    return 'Glass'\n",
    "src/util/text.py": "def fold(text):\n    return text\n",
    "src/util/text.ts": "export const x = 1;\n",
    "docs/计划.md": "# 计划\n\n第一步：写代码。\n第二步：测试。\n",
    "docs/old.txt": "项目预算通过。\n下次会议。\n".encode("gbk"),
    "docs/wide.txt": "wide 会议\n".encode("utf-16"),
    ".gitignore": "*.log\n/dist/\n!keep.log\n",
    "x.log": "glass",
    "keep.log": "glass kept",
    "dist/out.py": "glass",
    "src/.gitignore": "gen/\n",
    "src/gen/made.py": "glass",
    "image.bin": b"glass\0\1",
    ".git/config": "glass",
    ".env": "KEY=glass",
}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for name, content in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root_at(tmp_path)


# ── by name ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", ["src/main.py", "src/util/text.py"]),
        ("*.{py,ts}", "src/util", ["src/util/text.py", "src/util/text.ts"]),
        ("src/*.py", ".", ["src/main.py"]),
        ("src/**/*.py", ".", ["src/main.py", "src/util/text.py"]),
        ("./src/*.py", ".", ["src/main.py"]),
        ("**/util", ".", ["src/util/"]),
        ("*划*", ".", ["docs/计划.md"]),
        ("*.log", ".", ["keep.log"]),
        ("made.py", ".", []),
        ("made.py", "src/gen", ["src/gen/made.py"]),
        ("main.?y", "src", ["src/main.py"]),
    ],
)
def test_a_glob_finds_files_that_are_not_ignored(
    root: Root, pattern: str, path: str, found: list[str]
) -> None:
    answer = find_files(root, pattern, path)
    assert answer.split("\n") == found if found else answer.startswith("Nothing in ")


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", "src/.."])
def test_a_pattern_that_leads_out_is_refused(root: Root, pattern: str) -> None:
    with pytest.raises(Refused, match="has no `\\.\\.`"):
        find_files(root, pattern)


def test_a_pattern_or_a_limit_that_cannot_be_is_refused(root: Root) -> None:
    for pattern, limit in (("", 1), ("x" * 501, 1), ("*", 0), ("*", 1_001)):
        with pytest.raises(ValueError, match="1 to"):
            find_files(root, pattern, limit=limit)


def test_more_than_the_limit_is_counted(root: Root) -> None:
    assert find_files(root, "*.py", limit=1).split("\n") == [
        "src/main.py",
        "[1 more; use a narrower pattern]",
    ]


# ── by content ───────────────────────────────────────────────────────────────────────────────────────

Search = Callable[..., str]


@pytest.fixture(params=["plain", "ripgrep"])
def search(root: Root, request: pytest.FixtureRequest) -> Search:
    if request.param == "ripgrep" and not ripgrep(root):
        pytest.skip(NO_RIPGREP)
    return lambda text, **options: search_files(root, text, regex=request.param == "ripgrep", **options)


def test_a_text_is_found_with_file_and_line(search: Search) -> None:
    answer = search("Glass")
    assert answer.startswith("README.md\n1:# Glass\n\nsrc/main.py\n5:    return 'Glass'")
    assert "not searched" in answer


def test_context_shows_what_stands_around(search: Search) -> None:
    assert "docs/计划.md\n2-\n3:第一步：写代码。\n4-第二步：测试。" in search("写代码", context=1)
    assert "1:# 计划\n2-\n3-第一步：写代码。\n4:第二步：测试。" in search("第二步", context=3).replace(
        "1-", "1:"
    )


def test_case_can_be_ignored_and_files_chosen(search: Search) -> None:
    assert "All about glass" in search("GLASS", ignore_case=True, files="*.md")
    assert "main.py" not in search("GLASS", ignore_case=True, files="*.md")
    assert search("def", files="util/*", path="src").startswith("src/util/text.py\n1:def fold")
    assert search("def", path="src/main.py").startswith("src/main.py\n4:def main")


def test_chinese_is_found_in_utf16_too(search: Search) -> None:
    assert "docs/wide.txt\n1:wide 会议" in search("会议")


def test_ignored_binary_and_secret_files_are_left_out_and_counted(search: Search) -> None:
    answer = search("glass")
    assert [
        name for name in ("x.log", "dist", "made.py", "image.bin", ".git/", "KEY") if name in answer
    ] == []
    assert "keep.log\n1:glass kept" in answer
    assert "[files not searched: 1 (may hold keys), 1 (not text, or unreadable)]" in answer


def test_nothing_found_says_how_much_was_searched(search: Search) -> None:
    assert search("zebra", path="src").startswith("Nothing in src has zebra (4 files searched).")


def test_the_limit_is_kept_and_said(search: Search, root: Root) -> None:
    (root.folder / "many.txt").write_text("needle\n" * 500)
    answer = search("needle", limit=3)
    assert answer.count("needle") == 3
    assert "[stopped at 3 matches" in answer


def test_of_a_very_long_line_the_match_is_shown(search: Search, root: Root) -> None:
    (root.folder / "one.txt").write_text("填" * 50_000 + "walrus" + "充" * 50_000)
    answer = search("walrus")
    assert "walrus" in answer.partition("\n")[2]
    assert len(answer) < 600


def test_a_file_too_large_is_counted_and_not_searched(search: Search, root: Root) -> None:
    with (root.folder / "big.txt").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    assert "1 (larger than 5,000,000 bytes)" in search("zebra")


def test_plain_text_is_no_expression_and_gbk_is_read(root: Root) -> None:
    assert "src/main.py\n4:def main():" in search_files(root, "main()")
    assert search_files(root, "m.in").startswith("Nothing")
    assert "docs/old.txt\n2:下次会议。" in search_files(root, "会议")


@needs_ripgrep
def test_an_expression_is_ripgreps_and_a_broken_one_says_why(root: Root) -> None:
    assert search_files(root, r"^def \w+\(", regex=True).count(":def") == 2
    with pytest.raises(ValueError, match=r"(?s)ripgrep could not search: .*unclosed group"):
        search_files(root, "(", regex=True)


@needs_ripgrep
def test_an_expression_cannot_be_an_option_or_name_a_file(
    root: Root, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for text in ("--pre=touch", "--files", "-f/etc/passwd", "--no-ignore", f"--pre={outside}/x"):
        assert search_files(root, text, regex=True).startswith("Nothing")


@needs_ripgrep
@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(.*a){25}$", "^(a?){30}a{30}$"])
def test_an_expression_made_to_take_for_ever_is_answered(root: Root, text: str) -> None:
    (root.folder / "a.txt").write_text("a" * 40_000 + "!\n")
    assert search_files(root, text, regex=True, path="a.txt").startswith("Nothing in a.txt")


@needs_ripgrep
def test_an_expression_too_large_to_compile_is_refused(root: Root) -> None:
    with pytest.raises(ValueError, match="size limit"):
        search_files(root, "((a{1,100}){1,100}){1,100}", regex=True)


def test_without_ripgrep_an_expression_is_searched_as_text_and_that_is_said(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    answer = search_files(root, "main()", regex=True)
    assert "4:def main():" in answer
    assert "[ripgrep (rg) is not installed, so this was searched as plain text]" in answer


def test_a_program_inside_the_root_is_never_run(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    program = root.folder / "rg"
    program.write_text(f"#!/bin/sh\ntouch {root.folder}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(root.folder))
    search_files(root, "main", regex=True)
    assert not (root.folder / "ran").exists()


def test_a_tree_too_large_to_see_whole_is_said(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files_search, rooted_walk):
        monkeypatch.setattr(module, "MAX_ENTRIES", 3)
    for answer in (find_files(root, "*"), find_files(root, "zebra"), search_files(root, "glass")):
        assert "[only the first 3 files and folders were looked at]" in answer


def test_time_that_is_out_is_said(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_search, "MAX_SECONDS", -1.0)
    assert "[stopped after -1 seconds" in search_files(root, "glass")


@pytest.mark.parametrize(
    "options", [{"text": ""}, {"text": "a\nb"}, {"text": "a", "context": 11}, {"text": "a", "limit": 0}]
)
def test_a_search_that_cannot_be_is_refused(root: Root, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        search_files(root, **options)


@needs_ripgrep
def test_more_files_than_one_child_takes_are_all_searched_and_no_descriptor_is_left(root: Root) -> None:
    for number in range(120):
        (root.folder / f"n{number:03}.txt").write_text(f"needle {number}\n")
    before = len(os.listdir("/dev/fd"))
    assert search_files(root, "needle [0-9]+", regex=True, limit=200).count(":needle") == 120
    assert len(os.listdir("/dev/fd")) == before
