"""Queries on real SQLite files, and everything that a statement must not be able to do."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from glassloop.core.entries import ToolCall
from glassloop.tools import builtin
from glassloop.tools.builtin import sql_guard
from glassloop.tools.builtin.rooted import root_at
from glassloop.tools.builtin.rooted_names import Refused, Root
from glassloop.tools.builtin.sql import change_sqlite, describe_sqlite, query_sqlite
from glassloop.tools.toolbox import Toolbox

SCHEMA = """
CREATE TABLE cities (name TEXT PRIMARY KEY, people INTEGER, photo BLOB);
CREATE INDEX by_people ON cities (people);
CREATE VIEW large AS SELECT name FROM cities WHERE people > 10000000;
INSERT INTO cities VALUES ('北京', 21893095, x'00ff'), ('Zürich', 434335, NULL), ('a|b' || char(10) || 'c', 1, NULL);
"""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "work").mkdir()
    with closing(sqlite3.connect(tmp_path / "work" / "shop.db")) as database:
        database.executescript(SCHEMA)
    return root_at(tmp_path / "work")


@pytest.fixture
def query(root: Root) -> Iterator[Callable[[str], str]]:
    """Queries the database, and checks at the end that no byte of it has changed."""
    path = root.folder / "shop.db"
    before = path.read_bytes()
    yield lambda sql: query_sqlite(root, "shop.db", sql)
    assert path.read_bytes() == before
    assert os.listdir(root.folder) == ["shop.db"]


def test_rows_come_as_a_table_with_what_does_not_show_spelled_out(query: Callable[[str], str]) -> None:
    assert query("SELECT * FROM cities ORDER BY people DESC").split("\n") == [
        "| name | people | photo |",
        "| --- | --- | --- |",
        "| 北京 | 21893095 | (2 bytes) |",
        "| Zürich | 434335 | NULL |",
        r"| a\|b\nc | 1 | NULL |",
        "(3 rows)",
    ]


@pytest.mark.parametrize(
    ("sql", "last"),
    [
        ("SELECT name FROM large", "(1 row)"),
        ("WITH t AS (SELECT 1 UNION ALL SELECT 2) SELECT count(*) FROM t", "(1 row)"),
        ("PRAGMA table_info(cities)", "(3 rows)"),
        ("EXPLAIN QUERY PLAN SELECT * FROM cities", "(1 row)"),
        ("SELECT upper(name), json_array(people) FROM cities", "(3 rows)"),
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n", "(100 rows shown; there are more)"),
        ("SELECT name FROM cities WHERE 0", "(0 rows)"),
    ],
)  # fmt: skip
def test_whatever_only_reads_is_answered(query: Callable[[str], str], sql: str, last: str) -> None:
    assert query(sql).split("\n")[-1] == last


FORBIDDEN = [
    "DELETE FROM cities",
    "INSERT INTO cities VALUES ('x', 1, NULL)",
    "UPDATE cities SET people = 0",
    "DROP TABLE cities",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "ATTACH 'other.db' AS other",
    "ATTACH ':memory:' AS other",
    "VACUUM INTO 'copy.db'",
    "VACUUM",
    "PRAGMA journal_mode = WAL",
    "PRAGMA writable_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA temp_store_directory = '/tmp'",
    "SELECT load_extension('libc.so.6')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT writefile('x', 'y')",
    "SELECT readfile('/etc/passwd')",
    "BEGIN",
    "SAVEPOINT s",
    "SELECT 1; DELETE FROM cities",
    "REINDEX",
    "ANALYZE",
    "WITH t AS (SELECT 1) DELETE FROM cities RETURNING *",
    "EXPLAIN DELETE FROM cities",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_a_query_can_do_nothing_but_read(query: Callable[[str], str], sql: str) -> None:
    with pytest.raises(ValueError, match=r"only reads|no such function|one statement|SQLite: "):
        query(sql)


@pytest.mark.parametrize(
    "sql",
    ["SELEC 1", "SELECT nothing FROM cities", "SELECT ?", "SELECT 'a", "SELECT \0", "SELECT " + "(" * 5_000,
     "SELECT " + ",".join("1" * 600), "SELECT " + "x" * 200_000],
)  # fmt: skip
def test_a_statement_that_is_none_is_answered_in_words(query: Callable[[str], str], sql: str) -> None:
    with pytest.raises(ValueError, match=r"SQLite: |one statement"):
        query(sql)


def test_an_empty_statement_has_no_rows(query: Callable[[str], str]) -> None:
    assert query("-- nothing") == "The statement has no rows."


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(zeroblob(1000000000))",
        "SELECT length(replace(hex(zeroblob(20000000)), '0', 'xxxxxxxxxx'))",
        "WITH RECURSIVE n(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM n) SELECT max(length(x)) FROM n",
    ],
)
def test_a_value_too_large_is_stopped(query: Callable[[str], str], sql: str) -> None:
    with pytest.raises(ValueError, match="too big"):
        query(sql)


def test_a_query_without_end_is_stopped(query: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_guard, "MAX_SECONDS", 0.2)
    with pytest.raises(TimeoutError, match="ask for less"):
        query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n")


def test_long_values_and_wide_tables_are_cut_and_say_so(query: Callable[[str], str]) -> None:
    assert "x… (5,000 characters)" in query("SELECT replace(hex(zeroblob(2500)), '0', 'x') AS long")
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, replace(hex(zeroblob(100)), '0', 'y') FROM n"
    answer = query(rows)
    assert len(answer) < 20_000
    assert answer.endswith("rows shown; there are more)")


def test_the_schema_is_told_as_sql(root: Root) -> None:
    told = describe_sqlite(root, "shop.db")
    assert told.index("CREATE TABLE cities") < told.index("CREATE VIEW large") < told.index("CREATE INDEX")
    assert "sqlite_" not in told


@pytest.mark.parametrize(
    "path", ["../other.db", "/etc/passwd", "link.db", "folder/../shop.db", "shop.db\0", "", "gone.db"]
)
def test_a_database_outside_or_behind_a_link_is_refused(root: Root, path: str) -> None:
    other = root.folder.parent / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.executescript(SCHEMA)
    (root.folder / "link.db").symlink_to(other)
    for call in (lambda: query_sqlite(root, path, "SELECT 1 FROM cities"), lambda: change_sqlite(root, path, "DELETE FROM cities")):  # fmt: skip
        with pytest.raises((Refused, OSError)):
            call()
    assert not (root.folder / "gone.db").exists()


def test_a_path_with_the_signs_of_a_uri_is_only_a_path(root: Root) -> None:
    name = "a?mode=rwc&x=%2e#b.db"
    os.rename(root.folder / "shop.db", root.folder / name)
    assert "(3 rows)" in query_sqlite(root, name, "SELECT name FROM cities")
    with pytest.raises(FileNotFoundError):
        query_sqlite(root, "new.db?mode=rwc", "SELECT 1")


def test_a_log_that_is_a_link_is_refused(root: Root) -> None:
    (root.folder / "shop.db-wal").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match=r"shop\.db-wal is a symbolic link"):
        query_sqlite(root, "shop.db", "SELECT 1")


def test_a_file_that_is_no_database_says_so(root: Root) -> None:
    (root.folder / "a.txt").write_text("no database, but long enough to be looked at" * 20)
    with pytest.raises(ValueError, match="not a database"):
        query_sqlite(root, "a.txt", "SELECT 1 FROM x")


def test_a_database_in_use_with_a_log_is_read_up_to_date(root: Root) -> None:
    with closing(sqlite3.connect(root.folder / "shop.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO cities VALUES ('new', 2, NULL)")
        writer.commit()
        assert "| 4 |" in query_sqlite(root, "shop.db", "SELECT count(*) FROM cities")


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE cities SET people = people + 1", "Done. 3 rows changed."),
        ("DELETE FROM cities WHERE name = 'Zürich'", "Done. 1 row changed."),
        ("INSERT INTO cities VALUES ('x', 1, NULL) RETURNING name", "| x |"),
        ("CREATE TABLE t (a PRIMARY KEY, b)", "Done."),
        ("ALTER TABLE cities ADD COLUMN country TEXT", "Done."),
        ("ALTER TABLE cities RENAME COLUMN people TO inhabitants", "Done."),
        ("DROP VIEW large", "Done."),
        ("CREATE TRIGGER tr AFTER DELETE ON cities BEGIN SELECT 1; END", "Done."),
    ],
)
def test_one_change_is_made_and_kept(root: Root, sql: str, said: str) -> None:
    before = (root.folder / "shop.db").read_bytes()
    assert said in change_sqlite(root, "shop.db", sql)
    assert (root.folder / "shop.db").read_bytes() != before
    with closing(sqlite3.connect(root.folder / "shop.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = OFF",
        "SELECT load_extension('x')",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "UPDATE sqlite_schema SET sql = 'x'",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "DELETE FROM cities; DROP TABLE cities",
        "INSERT INTO cities VALUES ('北京', 1, NULL)",
        "INSERT INTO cities SELECT name || 'x', 1, NULL FROM cities UNION ALL SELECT '北京', 1, NULL",
    ],
)
def test_a_change_beyond_rows_and_tables_is_refused_and_nothing_is_left_of_it(root: Root, sql: str) -> None:
    before = (root.folder / "shop.db").read_bytes()
    with pytest.raises(ValueError, match=r"only changes|one statement|ends its transaction|SQLite: "):
        change_sqlite(root, "shop.db", sql)
    assert (root.folder / "shop.db").read_bytes() == before
    assert os.listdir(root.folder) == ["shop.db"]


def test_a_trigger_cannot_do_what_a_statement_cannot(root: Root) -> None:
    with closing(sqlite3.connect(root.folder / "shop.db")) as database:
        database.execute("CREATE TRIGGER tr AFTER DELETE ON cities BEGIN SELECT load_extension('x'); END")
    with pytest.raises(ValueError, match="load_extension"):
        change_sqlite(root, "shop.db", "DELETE FROM cities")


def test_a_database_that_is_protected_shared_or_read_only_is_not_changed(root: Root) -> None:
    (root.folder / ".git").mkdir()
    for name in (".git/a.db", "hard.db", "locked.db"):
        with closing(sqlite3.connect(root.folder / name)) as database:
            database.executescript(SCHEMA)
    os.link(root.folder / "hard.db", root.folder / "other.db")
    (root.folder / "locked.db").chmod(0o444)
    for name, why in ((".git/a.db", "protected"), ("hard.db", "2 names"), ("locked.db", "read-only")):
        with pytest.raises(Refused, match=why):
            change_sqlite(root, name, "DELETE FROM cities")
        assert "(3 rows)" in query_sqlite(root, name, "SELECT name FROM cities")


def test_the_sets_have_their_tools_and_only_one_of_them_writes(root: Root) -> None:
    options = {"files_root": str(root.folder)}
    tools = [tool for name in ("sql", "sql_write") for tool in builtin.load(name, options)]
    assert {tool.name: tool.effect for tool in tools} == {
        "query_sqlite": "read",
        "describe_sqlite": "read",
        "change_sqlite": "once",
    }
    assert Toolbox(tools).prepare(ToolCall("1", "query_sqlite", ASKED, json.dumps(ASKED))).outcome == "ready"
    secret = {**ASKED, "database": "id_rsa.db"}
    assert Toolbox(tools).prepare(ToolCall("1", "query_sqlite", secret, json.dumps(secret))).outcome == "ask"


ASKED = {"database": "shop.db", "sql": "SELECT 1"}
