"""Disks that are full, folders that are read-only, files that are torn, damaged, foreign or hostile."""

import asyncio
import os
import random
import shutil
import sqlite3
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions import kit

from glassloop import Agent
from glassloop.core.errors import SessionError
from glassloop.core.events import ModelStarted, TextDelta
from glassloop.core.journal import Record
from glassloop.models.scripted import ScriptedModel
from glassloop.sessions import database, place, schema
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store


def opening(path, **options):
    async def work():
        journal = SqliteJournal(path, take_over=True, **options)
        try:
            return await journal.open(kit.start("other"))
        finally:
            journal.close()

    return asyncio.run(work())


def change(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))
    connection.close()


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """A file with ten results in its log, as a killed process leaves it, and how many there are at each moment."""
    path = tmp_path_factory.mktemp("unfinished") / "s.db"
    code = """
import asyncio, os, sys
from pathlib import Path
from glassloop.core.journal import Record
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    await kit.whole_run(journal, "run0")
    await journal.open(kit.start("run1"))
    for number in range(10):
        await journal.commit("run1", [Record(number, kit.result(kit.call(number)))])
    os._exit(0)

asyncio.run(main())
"""
    child = kit.program(code, path)
    child.communicate(timeout=30)
    assert path.with_name("s.db-wal").stat().st_size > 0
    return path


def copied(source, folder):
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(source.with_name(source.name + suffix), folder / f"copy.db{suffix}")
    return folder / "copy.db"


WHOLE = {"run0": [1, 2, 3, 3, 4], "run1": list(range(10)), "other": []}


def is_a_prefix(opened):
    seqs = [record.seq for record in opened.records]
    return seqs == WHOLE[opened.run_id][: len(seqs)]


def outcome(act):
    """What an act gave, or the words of its `SessionError`. Anything else that it raises is a failure."""
    try:
        return act(), None
    except SessionError as error:
        return None, str(error)


@settings(max_examples=40)
@given(st.data())
def test_a_torn_log_leaves_a_prefix_of_what_was_committed_or_says_what_is_wrong(
    tmp_path_factory, unfinished, data
):
    path = copied(unfinished, tmp_path_factory.mktemp("torn"))
    log = path.with_name("copy.db-wal")
    whole = log.read_bytes()
    place = data.draw(st.integers(0, len(whole)))
    torn = data.draw(st.sampled_from(["cut", "zeros", "noise"]))
    rest = {
        "cut": b"",
        "zeros": bytes(len(whole) - place),
        "noise": random.Random(place).randbytes(len(whole) - place),
    }
    log.write_bytes(whole[:place] + rest[torn])
    if data.draw(st.booleans()):
        path.with_name("copy.db-shm").unlink()
    opened, error = outcome(lambda: opening(path))
    if error is not None:
        assert str(path) in error
    else:
        assert is_a_prefix(opened)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1000))
def test_a_log_torn_anywhere_leaves_a_prefix(tmp_path, unfinished, seed):
    path = copied(unfinished, tmp_path)
    log, chance = path.with_name("copy.db-wal"), random.Random(seed)
    data = bytearray(log.read_bytes())
    start = chance.randrange(len(data))
    size = chance.choice((len(data), 4096, 512, 1))
    data[start : start + size] = chance.choice((b"", bytes(size), chance.randbytes(size)))[
        : len(data) - start
    ]
    log.write_bytes(data)
    opened, error = outcome(lambda: opening(path))
    assert error is not None or is_a_prefix(opened)


def test_without_its_shared_memory_file_the_log_is_read_all_the_same(tmp_path, unfinished):
    path = copied(unfinished, tmp_path)
    path.with_name("copy.db-shm").unlink()
    assert len(opening(path).records) == 10


def test_without_its_log_the_file_opens_with_what_was_in_it_before(tmp_path, unfinished):
    path = copied(unfinished, tmp_path)
    path.with_name("copy.db-wal").unlink()
    assert is_a_prefix(opening(path))


@settings(max_examples=12)
@given(st.integers(0, 10**9), st.integers(1, 600), st.randoms(use_true_random=False))
def test_a_damaged_file_works_or_gives_a_session_error_whatever_is_done_with_it(
    tmp_path_factory, where, size, chance
):
    path = tmp_path_factory.mktemp("damaged") / "s.db"
    kit.written(path)
    data = bytearray(path.read_bytes())
    start = where % len(data)
    data[start : start + size] = chance.randbytes(len(data[start : start + size]))
    path.write_bytes(data)
    store = Store(path)
    for act in (
        lambda: opening(path),
        store.sessions,
        lambda: store.timeline("session1"),
        lambda: store.search("sunny"),
        lambda: store.export_jsonl("session1"),
        lambda: store.undo("session1"),
        lambda: store.delete("session1"),
    ):
        _, error = outcome(act)
        assert error is None or len(error) > len(str(path))


def test_a_schema_that_is_no_text_is_told_as_damage(tmp_path):
    path = tmp_path / "s.db"
    kit.written(path)
    data = path.read_bytes()
    assert b"ON DELETE SET NULL" in data
    path.write_bytes(data.replace(b"ON DELETE SET NULL", b"ON DELETE SE\x80 NULL", 1))
    for act in (Store(path).sessions, lambda: opening(path)):
        _, error = outcome(act)
        assert error is not None
        assert "it is damaged" in error


@pytest.mark.parametrize(
    "content",
    [
        b"hello, this is no database at all, but long enough to be one" * 20,
        b"\0" * 4096,
        b"SQLite format 3\0",
    ],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "s.db"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SessionError, match=r"not a database|damaged"):
        opening(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "s.db"
    change(path, "CREATE TABLE theirs(x)")
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(SessionError, match="another program's database"):
        opening(path)
    assert path.read_bytes() == before


def test_a_newer_files_schema_is_refused_by_both_numbers(tmp_path):
    path = tmp_path / "s.db"
    kit.written(path)
    change(path, "UPDATE meta SET v = '99' WHERE k = 'schema_version'")
    with pytest.raises(
        SessionError, match=rf"newer Glassloop \(schema 99, this one knows {schema.VERSION}\): upgrade"
    ):
        opening(path)


def test_an_older_file_is_migrated_in_one_transaction_or_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "s.db"
    before = kit.written(path).entries("session1")
    steps = schema.MIGRATIONS
    monkeypatch.setattr(schema, "VERSION", len(steps) + 2)
    monkeypatch.setattr(
        schema,
        "MIGRATIONS",
        (*steps, ("CREATE TABLE new(x) STRICT",), ("ALTER TABLE run ADD COLUMN y TEXT",)),
    )
    with pytest.raises(SessionError, match=r"unknown datatype|near|missing"):
        opening(path)
    monkeypatch.setattr(
        schema,
        "MIGRATIONS",
        (*steps, ("CREATE TABLE new(x ANY) STRICT",), ("ALTER TABLE run ADD COLUMN y TEXT",)),
    )
    assert opening(path).history == before
    change(path, "INSERT INTO new VALUES (1)", "UPDATE run SET y = 'there'")
    assert Store(path).entries("session1") == before


def test_a_sqlite_that_is_too_old_is_named_with_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(SessionError, match=r"sessions need 3\.37 or later"):
        opening(tmp_path / "s.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("statement", [
    ("CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM run; END",),
    ("CREATE VIEW v AS SELECT * FROM entry",),
    ("ALTER TABLE entry ADD COLUMN extra TEXT",),
    ("DROP TABLE approval",),
    ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE name = 'entry'"),
])  # fmt: skip
def test_a_file_whose_tables_somebody_changed_is_refused(tmp_path, statement):
    path = tmp_path / "s.db"
    kit.written(path)
    change(path, *statement)
    with pytest.raises(SessionError, match="is not as Glassloop makes it"):
        opening(path)


def test_what_people_add_for_themselves_does_no_harm(tmp_path):
    path = tmp_path / "s.db"
    store = kit.written(path)
    change(path, "CREATE TABLE mine(x)", "CREATE INDEX entry_type ON entry(type)")
    assert len(store.timeline("session1").steps) == 5


# ── the file itself ──────────────────────────────────────────────────────────────────────────────────


def make_link(path):
    path.with_name("real.db").touch(0o600)
    path.symlink_to(path.with_name("real.db"))


def make_open(path):
    path.touch()
    path.chmod(0o644)


@pytest.mark.parametrize(("make", "words"), [
    (make_link, "is a symbolic link"),
    (lambda path: path.symlink_to("/dev/null"), "is a symbolic link"),
    (lambda path: os.mkfifo(path, 0o600), "is not a regular file"),
    (lambda path: path.mkdir(), "is not a regular file"),
    (make_open, "can be read by other users .*chmod 600"),
    (lambda path: path.with_name("s.db-wal").symlink_to("elsewhere"), "s.db-wal is a symbolic link"),
])  # fmt: skip
def test_what_is_no_private_regular_file_is_refused_at_once(tmp_path, make, words):
    path = tmp_path / "s.db"
    make(path)
    with pytest.raises(SessionError, match=words):
        opening(path)


MOUNTS = "\n".join([
    "/dev/sda1 / ext4 rw 0 0",
    "server:/home /home nfs4 rw 0 0",
    "/dev/sdb1 /home/local xfs rw 0 0",
    r"//nas/share /mnt/with\040space cifs rw 0 0",
    "overlay / overlay rw 0 0",
])  # fmt: skip


@pytest.mark.parametrize(("folder", "kind"), [
    ("/var/lib", "overlay"),
    ("/home/me/.local", "nfs4"),
    ("/home/local/me", "xfs"),
    ("/homework", "overlay"),
    ("/mnt/with space/x", "cifs"),
])  # fmt: skip
def test_the_file_system_is_the_one_mounted_nearest(folder, kind):
    assert place.filesystem(place.Path(folder), MOUNTS) == kind


READ_ONLY = """
import asyncio, os, sys, tempfile
from pathlib import Path
from glassloop.core.errors import SessionError
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit
import concurrent.futures.thread, uuid  # now: somebody else may not be allowed to read Python's library

folder = Path(tempfile.mkdtemp())
if os.getuid() == 0:  # root may write anywhere, so be somebody else
    os.chown(folder, 65534, 65534)
    os.setuid(65534)
asyncio.run(kit.whole_run(SqliteJournal(folder / "old.db"), "run1"))
folder.chmod(0o500)
for name in ("new.db", "old.db"):
    try:
        journal = SqliteJournal(folder / name)
        asyncio.run(journal.open(kit.start("run2")))
        print(name, "opened")
    except SessionError as error:
        print(error)
"""


def test_a_read_only_folder_is_named_as_such():
    child = kit.program(READ_ONLY, stderr=-1)
    said, failed = child.communicate(timeout=30)
    new, _ = said.splitlines()
    assert failed == ""
    assert "new.db: sessions cannot be kept here: Permission denied. Make the folder writable" in new


def test_a_folder_that_is_a_file_is_named_as_such(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match="sessions cannot be kept here"):
        opening(tmp_path / "file" / "deeper" / "s.db")


FULL = """
import asyncio, resource, sys
from pathlib import Path
from glassloop.core.errors import SessionError
from glassloop.core.journal import Record
from glassloop.sessions.journal import SqliteJournal
from tests.sessions import kit

async def main():
    path = Path(sys.argv[1])
    journal = SqliteJournal(path)
    await journal.open(kit.start("run1"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    written = 0
    try:
        for number in range(1000):
            await journal.commit("run1", [Record(number, kit.result(kit.call(number), "x" * 10_000))])
            written = number + 1
    except SessionError as error:
        print(written, error, flush=True)
    try:
        await journal.intend("run1", [kit.intent(5000, kit.call())])
    except SessionError:
        print("nothing may run")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        await journal.commit("run1", [Record(6000, kit.result(kit.call(), "after the gap"))])
    except SessionError:
        print("no gaps")

asyncio.run(main())
"""


def test_when_the_disk_is_full_the_run_is_told_and_writes_no_gaps(tmp_path):
    path = tmp_path / "s.db"
    child = kit.program(FULL, path)
    first, *rest = child.communicate(timeout=60)[0].splitlines()
    assert rest == ["nothing may run", "no gaps"]
    assert str(path) in first
    assert "disk" in first
    opened = opening(path)
    assert [record.seq for record in opened.records] == list(range(int(first.split()[0])))
    assert opened.intents == ()


# ── rows that somebody changed ───────────────────────────────────────────────────────────────────────

BODIES = {
    "pickle": "cos\nsystem\n(S'touch pwned'\ntR.",
    "a constructor by name": '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}',
    "a type name of Python": '{"py/object": "subprocess.Popen", "args": ["touch pwned"]}',
    "a type that is not of the union": '{"parts": [{"type": "tool_call", "text": "x"}]}',
    "a wrong type": '{"parts": [{"type": "text", "text": 5}]}',
    "a list for an object": "[]",
    "a text for a list": '{"parts": "abc"}',
    "nothing": "",
    "an unknown field": '{"parts": [], "__class__": "x"}',
    "a kind that does not exist": '{"parts": [], "kind": "root"}',
    "deep nesting": "[" * 100_000,
    "a blob that is not there": '{"parts": [{"type": "text", "text": {"blob": "../../etc/passwd"}}]}',
    "a blob without a name": '{"parts": [{"type": "text", "text": {"blob": null}}]}',
    "bad base64": '{"parts": [{"type": "image", "data": "***"}]}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_row_is_data_or_refused_and_nothing_in_it_is_ever_run(tmp_path, body, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.db"
    store = kit.written(path)
    change(path, ("UPDATE entry SET body = ? WHERE type = 'user'", (body,)))
    for act in (
        lambda: opening(path),
        lambda: store.timeline("session1"),
        lambda: store.export_html("session1"),
    ):
        with pytest.raises(
            SessionError, match=r"entry 1 of run run1: a stored user is damaged|blob .* is missing"
        ):
            act()
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "name", ["Reply", "os.system", "glassloop.core.entries.User", "__import__", "", "intent"]
)
def test_a_type_is_looked_up_in_our_own_table_only(tmp_path, name):
    path = tmp_path / "s.db"
    kit.written(path)
    change(path, ("UPDATE entry SET type = ? WHERE type = 'user'", (name,)))
    with pytest.raises(SessionError, match=r"unknown type|unknown here|missing"):
        opening(path)


def test_a_value_larger_than_the_limit_is_refused_on_reading_as_on_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "LONGEST_VALUE", 1_000_000)
    path = tmp_path / "s.db"
    store = kit.written(path)
    change(path, "UPDATE entry SET body = hex(zeroblob(1000000)) WHERE type = 'user'")
    with pytest.raises(SessionError, match=r"a value is larger than .* MB"):
        store.timeline("session1")

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start("run2", "session2"))
        await journal.commit("run2", [Record(1, kit.result(kit.call(), "x" * 2_000_000))])

    with pytest.raises(SessionError, match=r"a value is larger than .* MB"):
        asyncio.run(work())


@pytest.mark.parametrize("parent", [1, 2, 3, 5, 99])
def test_a_branch_that_bites_its_tail_still_ends(tmp_path, parent):
    path = tmp_path / "s.db"
    store = kit.written(path)
    change(path, ("UPDATE entry SET parent_id = ? WHERE entry_id = 2", (parent,)))
    assert len(store.timeline("session1").steps) <= 5


def test_sql_in_names_and_queries_is_only_text(tmp_path):
    store = kit.written(tmp_path / "s.db")
    hostile = "'; DROP TABLE entry; --"
    store.rename("session1", hostile)
    store.set_labels("session1", [hostile])
    assert store.sessions(label=hostile)[0].name == hostile
    assert store.resolve(hostile) == "session1"
    assert store.search('sunny" OR body:* NEAR(') == []
    assert store.search(hostile) == []
    assert len(store.timeline("session1").steps) == 5


def test_the_mode_of_the_file_is_not_loosened_by_using_it(tmp_path):
    path = tmp_path / "s.db"
    for _ in range(2):
        Store(path).sessions()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_missing_blob_is_said_to_be_missing(tmp_path):
    path = tmp_path / "s.db"

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start())
        await journal.commit("run1", [Record(1, kit.result(kit.call(), "x" * 100_000))])
        journal.close()

    asyncio.run(work())
    change(path, "DELETE FROM blob")
    with pytest.raises(SessionError, match="is missing: the file is damaged"):
        opening(path)


# ── a model call in flight when the process dies (F16 and F18 of the fault list) ─────────────────────

DIES = """
import os, signal, sys
from pathlib import Path
from glassloop import Agent
from glassloop.core.entries import Reply
from glassloop.core.events import ModelStarted, TextDelta
from glassloop.models.scripted import ScriptedModel
from glassloop.sessions.journal import SqliteJournal

path, dies = Path(sys.argv[1]), sys.argv[2]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Model(ScriptedModel):
    async def stream(self, request, recorder):
        async for said in super().stream(request, recorder):
            yield said
            if dies == "in the stream" and isinstance(said, TextDelta):
                die()

class Journal(SqliteJournal):
    async def commit(self, run_id, records):
        replied = any(isinstance(one.value, Reply) for one in records)
        if replied and dies == "before it is written":
            die()
        await super().commit(run_id, records)
        if replied:
            self.close()
            die()

Agent(Model(["The first answer."]), journal=Journal(path), name="asked").run_sync("Ask.", session="session1")
"""


@pytest.mark.parametrize(("dies", "answer"), [
    ("in the stream", "Another one."),
    ("before it is written", "Another one."),
    ("when it is written", "The first answer."),
])  # fmt: skip
def test_of_two_answers_to_a_call_that_was_in_flight_one_is_kept_whole_and_shown(tmp_path, dies, answer):
    path = tmp_path / "s.db"
    child = kit.program(DIES, path, dies)
    child.communicate(timeout=30)
    assert child.returncode == -9
    agent = Agent(ScriptedModel(["Another one."]), journal=SqliteJournal(path), name="asked")
    with agent.stream_sync(None, session="session1") as run:
        events = list(run)
        result = run.result
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    attempts = [event.attempt for event in events if isinstance(event, ModelStarted)]
    assert attempts == ([] if dies == "when it is written" else [2])
    assert result.text == answer
    assert shown == ("" if dies == "when it is written" else answer)
    assert [one.text for one in Store(path).entries("session1")] == ["Ask.", answer]
    assert Store(path).timeline("session1").runs[0].status == "done"
