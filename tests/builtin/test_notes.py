"""Searching real folders of notes, tidy and not."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.notes import notes_tool
from glassloop.tools.builtin.notes_index import NotesIndex
from glassloop.tools.builtin.notes_text import MAX_FILE_BYTES, decode, passages

Search = Callable[..., str]

NOTES = {
    "旅行/北京.md": "# 北京三日游\n\n第一天去故宫。\n第二天吃烤鸭，天气晴。\n",
    "旅行/東京.md": "# 東京の旅\n\n浅草寺でおみくじを引いた。\nラーメンがおいしい。\n",
    "work/meeting.md": "# Weekly meeting\n\nDiscussed the budget.\n\n## Decisions\n\nZürich office gets a new printer 🖨️.\nLaunch 🚀 in May.\n",
    "work/plan.txt": "The budget for 2027 is tight.\r\nTravel budget: 3000.\r\nC++ training\r\n",
    "work/会议记录.md": "项目预算通过。\n下次会议在周五。\n",
    "서울.md": "서울에서 만난 친구\n",
    "README": "All my notes.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name, text in NOTES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


@pytest.fixture
def search(folder: Path) -> Search:
    return notes_tool(folder).function


def places(answer: str) -> list[str]:
    return re.findall(r"^(.+?:\d+): ", answer, re.MULTILINE)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("故宫", "旅行/北京.md:3"),
        ("鸭", "旅行/北京.md:4"),
        ("烤鸭 天气", "旅行/北京.md:4"),
        ("北京", "旅行/北京.md:1"),
        ("预算", "work/会议记录.md:1"),
        ("周五", "work/会议记录.md:2"),
        ("下次会议", "work/会议记录.md:2"),
        ("浅草寺", "旅行/東京.md:3"),
        ("ラーメン", "旅行/東京.md:4"),
        ("ﾗｰﾒﾝ", "旅行/東京.md:4"),
        ("서울", "서울.md:1"),
        ("친구", "서울.md:1"),
        ("zurich", "work/meeting.md:7"),
        ("ZÜRICH", "work/meeting.md:7"),
        ("🚀", "work/meeting.md:8"),
        ("printers", "work/meeting.md:7"),
        ("discussing", "work/meeting.md:3"),
        ("C++", "work/plan.txt:3"),
        ("travel budget", "work/plan.txt:2"),
        ("2027", "work/plan.txt:1"),
        ("２０２７", "work/plan.txt:1"),
        ("decisions printer", "work/meeting.md:5"),
    ],
)
def test_a_word_of_any_script_and_length_is_found_with_file_and_line(
    search: Search, query: str, first: str
) -> None:
    assert places(search(query))[0] == first


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("北京天气怎么样", "旅行/北京.md"),
        ("what is the budget for travel in 2027?", "work/plan.txt"),
        ("烤鸭 nonsense", "旅行/北京.md"),
    ],
)
def test_a_whole_question_finds_what_has_parts_of_it(search: Search, query: str, first: str) -> None:
    assert places(search(query))[0].startswith(first)


def test_passages_with_all_words_come_before_those_with_some(search: Search) -> None:
    found = places(search("budget discussed", 5))
    assert found[0].startswith("work/meeting.md")
    assert any(place.startswith("work/plan.txt") for place in found[1:])


def test_a_files_name_counts_as_text(search: Search) -> None:
    assert places(search("plan"))[0] == "work/plan.txt:1"


def test_the_snippet_shows_the_line_and_what_follows(search: Search) -> None:
    assert "work/plan.txt:2: Travel budget: 3000. / C++ training" in search("travel")


def test_of_a_very_long_line_the_snippet_shows_the_match(folder: Path, search: Search) -> None:
    (folder / "long.txt").write_text("filler " * 20_000 + "needle " + "filler " * 20_000)
    answer = search("needle")
    assert "needle" in answer.partition("\n")[2]
    assert len(answer) < 500


def test_one_line_of_millions_of_letters_is_searched_in_pieces(folder: Path, search: Search) -> None:
    (folder / "one.txt").write_text("first\n" + "中" * 400_000 + "walrus" + "中" * 400_000 + "\nlast walrus")
    assert set(places(search("walrus"))) == {"one.txt:2", "one.txt:3"}
    assert places(search("中中", 50)) == ["one.txt:2"]


def test_a_word_at_the_cut_of_a_long_line_is_found(folder: Path, search: Search) -> None:
    (folder / "cut.txt").write_text("x" * 1997 + " walrus " + "x" * 3000)
    assert places(search("walrus")) == ["cut.txt:1"]


def test_the_limit_holds_and_hits_are_never_the_same_line(folder: Path, search: Search) -> None:
    for number in range(30):
        (folder / f"many{number}.md").write_text("# walrus\n\nwalrus walrus\n\n## more walrus\n")
    for limit in (1, 5, 50):
        found = places(search("walrus", limit))
        assert len(found) == len(set(found)) == min(limit, len(found))
    assert len(places(search("walrus", 5))) == 5


@pytest.mark.parametrize("query", ["absentword", "🦖", "鲸", "!!!", '"'])
def test_what_is_nowhere_is_said_to_be_nowhere(search: Search, query: str) -> None:
    assert search(query).startswith(f"Nothing for {query!r} in 7 files")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "empty"),
        ((" \n",), "empty"),
        (("x" * 501,), "501 characters"),
        (("a", 0), "1 to 50"),
        (("a", 51), "1 to 50"),
        (("a", -1), "1 to 50"),
    ],
)
def test_a_query_or_limit_that_makes_no_sense_is_refused(
    search: Search, arguments: tuple[object, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        search(*arguments)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "a OR",
        "NEAR(",
        "a* -b ^c",
        "body:x",
        "{a b}:",
        "a AND NOT b",
        "'; DROP TABLE passages; --",
        "\x00",
        "\ud800",
        "(" * 400,
    ],
)
def test_no_query_is_syntax(search: Search, query: str) -> None:
    assert "in 7 files" in search(query)
    assert places(search("故宫"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(query=st.text(min_size=1, max_size=60).filter(str.strip))
def test_any_query_is_answered(search: Search, query: str) -> None:
    assert "in 7 files" in search(query)


def test_every_word_of_every_note_is_found_in_its_file(search: Search) -> None:
    for name, text in NOTES.items():
        for word in re.findall(r"\w+", text):
            assert any(place.startswith(name + ":") for place in places(search(word, 50))), (name, word)


# ── files that are not as they should be ─────────────────────────────────────────────────────────────


def test_what_cannot_be_searched_is_counted_by_reason(folder: Path, search: Search, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("hunter2")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "more.md").write_text("hunter2")
    (folder / "escape.md").symlink_to(tmp_path / "secret.md")
    (folder / "escape").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    (folder / "dead.md").symlink_to(tmp_path / "nowhere")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\nhunter2")
    (folder / "binary.md").write_bytes(b"hunter2\x00\x01\x02")
    os.mkfifo(folder / "pipe.md")
    (folder / "huge.txt").write_bytes(b"hunter2 " * (MAX_FILE_BYTES // 8 + 1))
    (folder / "empty.md").write_bytes(b"")
    (folder / ".hidden.md").write_text("hunter2")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.md").write_text("hunter2")
    for _ in range(2):
        answer = search("hunter2")
        assert answer.startswith("Nothing for 'hunter2' in 8 files")
        assert answer.endswith(
            "Files not searched: 1 (larger than 5 MB), 3 (not Markdown or text), 4 (symbolic link)."
        )


@pytest.mark.parametrize(
    "data",
    [
        "编码 naïve".encode(),
        b"\xef\xbb\xbf" + "编码 naïve".encode(),
        "\ufeff编码 naïve".encode("utf-16-le"),
        "\ufeff编码 naïve".encode("utf-16-be"),
        "编码 naïve".encode("utf-32"),
        "编码 naïve".encode("gb18030"),
    ],
)
def test_an_encoding_is_recognised(data: bytes) -> None:
    assert decode(data) == "编码 naïve"


def test_a_file_in_an_old_encoding_is_found(folder: Path, search: Search) -> None:
    (folder / "gbk.txt").write_bytes("第一行\r\n春节放假安排\r\n".encode("gbk"))
    (folder / "latin.txt").write_bytes("caf\xe9 au lait".encode("latin-1"))
    assert places(search("春节")) == ["gbk.txt:2"]
    assert places(search("café")) == ["latin.txt:1"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_an_editor_counts_them(folder: Path, search: Search, end: str) -> None:
    lines = [f"line {number} \u2028 \x0b \x0c" for number in range(1, 400)]
    lines[276] = "walrus"
    (folder / "lines.txt").write_bytes(end.join(lines).encode())
    assert places(search("walrus")) == ["lines.txt:277"]


def test_a_file_name_that_is_no_text_does_no_harm(folder: Path, search: Search) -> None:
    with open(os.fsencode(folder) + b"/\xff\xfe.md", "wb") as file:
        file.write(b"walrus")
    answer = search("walrus")
    assert answer.encode()
    assert "\ufffd\ufffd.md:1: walrus" in answer


def test_what_changed_between_two_searches_is_read_again(folder: Path, search: Search) -> None:
    path = folder / "work" / "plan.txt"
    assert places(search("travel"))
    path.write_text("Nothing but a walrus here.\n")
    assert "Nothing for 'travel'" in search("travel")
    assert places(search("walrus")) == ["work/plan.txt:1"]
    path.unlink()
    assert "in 6 files" in search("walrus")
    (folder / "new.md").write_text("walrus again")
    assert places(search("walrus")) == ["new.md:1"]
    (folder / "new.md").write_bytes(b"walrus\x00")
    assert "1 (not Markdown or text)" in search("walrus")
    (folder / "new.md").write_text("walrus, mended")
    assert places(search("walrus")) == ["new.md:1"]


def test_a_folder_that_vanishes_is_searched_as_empty_and_an_empty_one_too(tmp_path: Path) -> None:
    root = tmp_path / "n"
    root.mkdir()
    search = notes_tool(root).function
    assert "in 0 files" in search("x")
    root.rmdir()
    assert "in 0 files" in search("x")


@pytest.mark.parametrize("name", ["missing", "file.md"])
def test_a_folder_that_is_none_is_refused_when_the_tool_is_made(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.md").write_text("x")
    with pytest.raises(ConfigError, match=r"search_notes: .*(does not exist|is not a folder)\. Make it"):
        notes_tool(tmp_path / name)


def test_thousands_of_files_are_each_read_once(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number}.md").write_text(f"note {number} 笔记\n\nkey{number}\n")
    index = NotesIndex(tmp_path)
    assert [(hit.path, hit.line) for hit in index.search("key2718", 5).hits] == [("2718.md", 3)]
    written = index._database.total_changes
    assert len(index.search("笔记", 50).hits) == 50
    assert index._database.total_changes == written


def test_searches_from_several_threads_give_the_same_answers(search: Search) -> None:
    answers: list[list[str]] = []
    threads = [threading.Thread(target=lambda: answers.append(places(search("budget")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [answers[0]] * 8
    assert answers[0]


@given(
    st.lists(st.sampled_from(["", "text", "# heading", "## more", "  ", "字"]), max_size=80).map("\n".join)
)
def test_passages_together_are_the_whole_text_with_true_line_numbers(text: str) -> None:
    pieces = list(passages(text))
    assert "\n".join(piece.text for piece in pieces) == text
    lines = text.split("\n")
    for piece in pieces:
        assert lines[piece.first_line - 1] == piece.text.split("\n")[0]
