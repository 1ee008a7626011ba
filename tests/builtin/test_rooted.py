"""No path and no race leads out of the root. Everything here is a real tree, with real links."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.files_arrange import delete_file, make_folder, move_file
from glassloop.tools.builtin.files_read import list_files, read_file
from glassloop.tools.builtin.files_search import find_files, search_files
from glassloop.tools.builtin.files_write import edit_file, write_file
from glassloop.tools.builtin.rooted import read_bytes, root_at
from glassloop.tools.builtin.rooted_names import Refused, Root, folded, is_secret, parts_of, protected

SECRET = "the secret outside"


def build(folder: Path) -> Root:
    """A root among neighbours, with links of every kind to them."""
    work, outside, evil = folder / "work", folder / "outside", folder / "work-evil"
    for each in (work / "sub", outside, evil):
        each.mkdir(parents=True)
        (each / "file.txt").write_text(SECRET if each != work / "sub" else "inside")
    (work / "file.txt").write_text("inside")
    for name, target in {
        "folder_link": str(outside),
        "up_link": "..",
        "file_link": str(outside / "file.txt"),
        "relative_link": "../outside/file.txt",
        "inner_link": "sub",
        "dead_link": "nowhere",
        "loop": "loop",
        "zero": "/dev/zero",
        "environ": "/proc/self/environ",
        "stdin": "/dev/stdin",
    }.items():
        (work / name).symlink_to(target)
    return root_at(work)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return build(tmp_path)


ESCAPES = [
    "../../etc/passwd",
    "/etc/passwd",
    "sub/../../outside/file.txt",
    "sub/../file.txt",
    "..",
    "./..",
    "sub/./../../outside/file.txt",
    "folder_link/file.txt",
    "up_link/outside/file.txt",
    "up_link/work/file.txt",
    "file_link",
    "relative_link",
    "inner_link/file.txt",
    "loop",
    "loop/file.txt",
    "~/file.txt",
    "zero",
    "environ",
    "stdin",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/cwd/file.txt",
    "/proc/self/root/etc/passwd",
    "file.txt\0.md",
    "x" * 5_000,
    "x/" * 2_500 + "y",
    "\ud800",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leads_out_or_through_a_link_is_refused_by_every_tool(root: Root, path: str) -> None:
    before = everything(root.folder.parent)
    for call in calls_on(root, path):
        with pytest.raises((Refused, FileNotFoundError)):
            call()
    assert everything(root.folder.parent) == before


def calls_on(root: Root, path: str) -> Iterator[Callable[[], str]]:
    yield lambda: read_file(root, path)
    yield lambda: list_files(root, path)
    yield lambda: find_files(root, "*", path)
    yield lambda: search_files(root, "e", path)
    yield lambda: write_file(root, path, "written")
    yield lambda: edit_file(root, path, "e", "E")
    yield lambda: move_file(root, path, "moved")
    yield lambda: move_file(root, "file.txt", path + "/moved")
    yield lambda: make_folder(root, path + "/new")


def everything(folder: Path) -> dict[str, bytes]:
    """Every name below a folder, with the content of files and the target of links."""
    found: dict[str, bytes] = {}
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here, name)
            target = os.readlink(path).encode() if path.is_symlink() else b""
            found[str(path)] = target or (path.read_bytes() if path.is_file() else b"")
    return found


def test_a_sibling_whose_name_begins_like_the_roots_is_outside(root: Root) -> None:
    for path in (
        f"{root.folder}-evil/file.txt",
        f"{root.folder}/../work-evil/file.txt",
        "../work-evil/file.txt",
    ):
        with pytest.raises(Refused):
            read_file(root, path)


def test_an_absolute_path_inside_the_root_is_taken_also_through_the_name_that_people_use(
    tmp_path: Path,
) -> None:
    build(tmp_path)
    (tmp_path / "alias").symlink_to("work")
    root = root_at(tmp_path / "alias")
    for path in (tmp_path / "work/sub/file.txt", tmp_path / "alias/sub/file.txt", "//sub//./file.txt"[2:]):
        assert parts_of(root, str(path)) == ("sub", "file.txt")
    assert "inside" in read_file(root, str(tmp_path / "alias/sub/file.txt"))


def test_a_link_is_shown_but_nothing_behind_it(root: Root) -> None:
    assert "folder_link (a link, not followed)" in list_files(root, levels=5)
    assert find_files(root, "**/file.txt").splitlines() == ["file.txt", "sub/file.txt"]
    assert "Nothing in . has" in search_files(root, SECRET)
    for pattern in ("../**", "/etc/*", "sub/../../**", "{..,x}/*", "folder_link/*"):
        with suppress(Refused):
            assert "outside" not in find_files(root, pattern)


def test_a_link_is_refused_with_what_it_leads_to_so_that_a_file_inside_can_be_named(root: Root) -> None:
    (root.folder / "README").symlink_to("file.txt")
    with pytest.raises(Refused, match=r"README is a symbolic link to file\.txt, and links are not followed"):
        read_file(root, "README")
    with pytest.raises(Refused, match="inner_link is a symbolic link to sub"):
        read_file(root, "inner_link/file.txt")


def test_a_pipe_a_socket_and_a_folder_are_refused_at_once(root: Root) -> None:
    os.mkfifo(root.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root.folder / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(Refused, match=f"{name} is no regular file"):
                read_file(root, name)
            with pytest.raises(Refused, match=f"{name} is no regular file"):
                write_file(root, name, "x")
    with pytest.raises(IsADirectoryError, match="sub is a folder"):
        read_file(root, "sub")
    with pytest.raises(IsADirectoryError):
        write_file(root, "sub", "x")


def test_a_hard_link_is_never_written(root: Root) -> None:
    outside = root.folder.parent / "outside" / "file.txt"
    os.link(outside, root.folder / "hard.txt")
    for call in (write_file, lambda *_: edit_file(root, "hard.txt", "secret", "x")):
        with pytest.raises(Refused, match="2 names"):
            call(root, "hard.txt", "x")
    assert outside.read_text() == SECRET


@pytest.mark.parametrize("folder", ["/", "/proc", "/proc/self", "/dev", "/sys/kernel"])
def test_the_system_itself_is_no_root(folder: str) -> None:
    with pytest.raises(ConfigError, match=r"Set files_root|Make it"):
        root_at(Path(folder))


def test_a_root_that_is_missing_or_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none, does not exist\. Make it, or set files_root"):
        root_at(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file, is not a folder"):
        root_at(tmp_path / "file")


def test_a_name_that_is_not_utf8_is_listed_with_escapes_and_can_be_read(root: Root) -> None:
    Path(os.fsdecode(os.fsencode(root.folder) + b"/bad\xff\n.txt")).write_text("odd")
    assert "bad\\xff\\x0a.txt" in list_files(root)
    assert "odd" in read_file(root, os.fsdecode(b"bad\xff\n.txt"))
    with pytest.raises(Refused, match="control character"):
        write_file(root, "new\nline.txt", "x")


def test_a_name_in_decomposed_letters_is_offered_so_that_it_can_be_copied(root: Root) -> None:
    (root.folder / "cafe\u0301.txt").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"Near it: cafe\\u0301\.txt"):
        read_file(root, "caf\u00e9.txt")


# ── any path at all ──────────────────────────────────────────────────────────────────────────────────

NAMES = st.sampled_from(
    [
        "..", ".", "", "~", "sub", "file.txt", "new", "folder_link", "up_link", "file_link", "relative_link",
        "inner_link", "dead_link", "loop", "outside", "work", "work-evil", "etc", "passwd", "a\0b", "\\..\\",
        "．．", "x" * 300,
    ]
)  # fmt: skip
PATHS = st.builds(
    lambda start, names: start + "/".join(names),
    st.sampled_from(["", "/", "//", "{root}/", "{root}-evil/", "{root}/../", "{outside}/"]),
    st.lists(st.one_of(NAMES, st.text(max_size=3)), max_size=6),
)


@settings(max_examples=60)
@given(PATHS, PATHS)
def test_no_path_reads_or_writes_outside(path: str, other: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = build(Path(folder))
        path, other = (
            each.replace("{root}", str(root.folder)).replace("{outside}", f"{folder}/outside")
            for each in (path, other)
        )
        before = outside_of(root)
        for call in [
            *calls_on(root, path),
            lambda: move_file(root, path, other),
            lambda: find_files(root, other, path),
            lambda: search_files(root, "e", path, files=other or "*"),
            lambda: delete_file(root, path),
        ]:
            with suppress(Refused, OSError, ValueError, LookupError):
                assert SECRET not in call()
        assert outside_of(root) == before


def outside_of(root: Root) -> dict[str, bytes]:
    found = everything(root.folder.parent)
    return {path: data for path, data in found.items() if not path.startswith(f"{root.folder}/")}


# ── races ────────────────────────────────────────────────────────────────────────────────────────────

SWAPS = """
import os, sys
from contextlib import suppress
os.chdir(sys.argv[1])
real, target = sys.argv[2:]
print("ready", flush=True)
while True:
    for act, *names in (os.rename, real, "kept"), (os.symlink, target, real), (os.unlink, real), (os.rename, "kept", real):
        with suppress(OSError):
            act(*names)
"""


@pytest.mark.parametrize(
    ("swapped", "target"), [("sub", "../outside"), ("sub/file.txt", "../../outside/file.txt")]
)
def test_what_is_swapped_for_a_link_between_check_and_open_is_never_followed(
    root: Root, swapped: str, target: str
) -> None:
    command = [sys.executable, "-c", SWAPS, str(root.folder), swapped, target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            reads = {outcome(lambda: read_bytes(root, ("sub", "file.txt"), 100)[0]) for _ in range(10_000)}
            edits = {outcome(partial(edit_in, root, *words)) for _ in range(300) for words in EDITS}
        finally:
            swapper.kill()
    failures = {Refused, OSError, FileNotFoundError, NotADirectoryError, LookupError}
    assert {b"inside", Refused} <= reads <= {b"inside"} | failures
    assert edits <= {"Edited"} | failures
    assert (root.folder.parent / "outside" / "file.txt").read_text() == SECRET


EDITS = (("inside", "edited"), ("edited", "inside"))


def edit_in(root: Root, old: str, new: str) -> str:
    return edit_file(root, "sub/file.txt", old, new)[:6]


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (Refused, OSError, LookupError) as error:
        return type(error)


# ── protected names ──────────────────────────────────────────────────────────────────────────────────

PROTECTED = [
    ".git/hooks/pre-commit",
    ".git",
    "sub/.git/config",
    ".bashrc",
    ".bash_aliases",
    ".bashrc.d/x",
    ".zshenv",
    ".profile",
    ".env",
    ".env.local",
    ".env.production",
    ".env-test",
    ".envrc",
    "glassloop.toml",
    "sub/glassloop.toml",
    ".glassloop/tools.py",
    ".mcp.json",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".ssh/authorized_keys",
    ".npmrc",
    ".config/fish/config.fish",
    ".config/autostart/x.desktop",
    "Library/LaunchAgents/x.plist",
    ".local/bin/ls",
    "sitecustomize.py",
    # the same to some file system
    ".GIT/config",
    ".Git/hooks/x",
    ".gıt/config",
    ".git./config",
    ".git /config",
    ".git::$INDEX_ALLOCATION/config",
    "GIT~1/config",
    ".g\u200cit/config",
    ".g\u0069\u0307t/config",
    "．ｇｉｔ/config",
    "\u2024git/config",
    ".BASHRC",
    ".baſhrc",
    ".ENV",
    "Glassloop.TOML",
    ".Bash\u00adrc",
    ".zshr\u0063\u0327",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_a_protected_name_is_never_written_moved_or_deleted_even_where_it_does_not_exist(
    root: Root, path: str
) -> None:
    before = everything(root.folder)
    for call in (
        lambda: write_file(root, path, "x"),
        lambda: edit_file(root, path, "a", "b"),
        lambda: make_folder(root, path),
        lambda: delete_file(root, path),
        lambda: move_file(root, path, "moved"),
        lambda: move_file(root, "file.txt", path),
        lambda: move_file(root, "sub", path),
    ):
        with pytest.raises(Refused, match=r"is protected|backslash or a control"):
            call()
    assert everything(root.folder) == before


@pytest.mark.parametrize("folder", [".config", ".local", "x/Library"])
def test_a_folder_cannot_be_moved_to_where_its_content_would_be_protected(root: Root, folder: str) -> None:
    (root.folder / "sub" / "fish").mkdir()
    with pytest.raises(Refused, match="around what starts by itself"):
        move_file(root, "sub", folder)


def test_our_own_folders_are_protected_and_secret_even_before_they_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = platformdirs.user_data_path("glassloop", appauthor=False)
    root = Root(Path(own.anchor), Path(own.anchor))
    parts = own.parts[1:]
    assert protected(root, (*parts, "sessions.db")) == "Glassloop's own"
    assert is_secret(root, (*parts, "sessions.db"))
    assert protected(root, (*parts[:-1], "other", "sessions.db")) == ""
    monkeypatch.setenv("GLASSLOOP_CONFIG_DIR", str(own.parent / "other"))
    assert protected(root, (*parts[:-1], "other", "approvals.json")) == "Glassloop's own"


@pytest.mark.parametrize(
    "path",
    ["README.md", ".gitignore", ".github/workflows/ci.yml", ".env.example", "src/environment.py", ".eslintrc.json",
     "git/config", ".config/app.toml", "docs/.hidden", "envs.py", "bashrc.md", ".editorconfig"],
)  # fmt: skip
def test_an_ordinary_name_is_not_protected(root: Root, path: str) -> None:
    assert protected(root, parts_of(root, path)) == ""


@given(st.sampled_from([".git", ".bashrc", ".env", "glassloop.toml", ".mcp.json"]), st.data())
def test_case_invisible_letters_and_composition_make_no_difference(name: str, data: st.DataObject) -> None:
    spelled = "".join(
        data.draw(st.sampled_from([char, char.upper(), char + "\u200d", "\u200b" + char])) for char in name
    )
    assert folded(spelled) == folded(name)
