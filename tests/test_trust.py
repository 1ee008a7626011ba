"""What a folder brings along: what is found of it, and that it counts only as it was when it was trusted."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from glassloop.config import load
from glassloop.config.mcp_servers import find_servers
from glassloop.config.project_texts import (
    LONGEST_AGENTS_FILE,
    ProjectText,
    agents_files,
    find_skills,
    folders_above,
    instructions_of,
    listed,
)
from glassloop.config.trust import TrustStore
from glassloop.core.errors import ConfigError
from glassloop.tools.mcp.definitions import Definition
from glassloop.tools.skills import read_skill_of


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data" / "trust.json")


# ── the store ────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_trusted_only_as_it_was(tmp_path: Path, store: TrustStore) -> None:
    file = tmp_path / ".mcp.json"
    assert store.standing(file, "a") == "new"
    store.trust(file, "a")
    assert store.standing(file, "a") == "trusted"
    assert store.standing(file, "a\u200b") == "changed"
    assert store.trusted_text(file) == "a"
    assert TrustStore(store.path).standing(file, "a") == "trusted"
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert store.forget(file)
    assert not store.forget(file)
    assert store.standing(file, "a") == "new"
    assert [one.name for one in store.path.parent.iterdir()] == ["trust.json"]


def test_a_link_that_points_elsewhere_later_is_another_file(tmp_path: Path, store: TrustStore) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a")
    store.trust(link / "AGENTS.md", "text")
    assert store.standing(tmp_path / "a" / "AGENTS.md", "text") == "trusted"
    link.unlink()
    link.symlink_to(tmp_path / "b")
    assert store.standing(link / "AGENTS.md", "text") == "new"


def test_definitions_are_kept_by_server_and_go_with_its_file(tmp_path: Path, store: TrustStore) -> None:
    file = (tmp_path / ".mcp.json").resolve()
    store.trust(file, "{}")
    one, other = Definition("act", "Acts."), Definition("act", "Sends.")
    assert store.pinned(f"{file}#s") is None
    store.pin(f"{file}#s", [one, Definition("look")])
    store.pin(f"{file}#s", [other])
    assert store.pinned(f"{file}#s") == {"act": other.text, "look": Definition("look").text}
    store.forget(file)
    assert store.pinned(f"{file}#s") is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 9}', '{"format": 1, "files": 7, "tools": {"s": 3}}', "[" * 100_000]
)
def test_a_store_that_cannot_be_read_trusts_nothing(tmp_path: Path, store: TrustStore, text: str) -> None:
    store.path.parent.mkdir()
    store.path.write_text(text, "utf-8")
    assert store.files() == {}
    assert store.pinned("s") == {}, "a server is never met for the first time again"
    assert store.standing(tmp_path / "a", "x") == "new"


def test_what_cannot_be_read_is_neither_used_nor_written_over(tmp_path: Path, store: TrustStore) -> None:
    store.path.parent.mkdir()
    store.path.write_text("{", "utf-8")
    for change in (
        lambda: store.trust(tmp_path / "a", "x"),
        lambda: store.forget(tmp_path / "a"),
        lambda: store.pin("s", [Definition("act")]),
    ):
        with pytest.raises(OSError, match="nothing is trusted"):
            change()
    assert store.path.read_text("utf-8") == "{"
    assert "Delete it to begin anew" in store.trouble


def test_a_store_that_others_can_write_trusts_nothing(tmp_path: Path, store: TrustStore) -> None:
    store.trust(tmp_path / "a", "x")
    store.path.chmod(0o666)
    assert store.standing(tmp_path / "a", "x") == "new"
    assert "others than you can write it" in store.trouble


def test_what_two_programs_trust_at_once_is_all_kept(tmp_path: Path, store: TrustStore) -> None:
    def trust(number: int) -> None:
        for each in range(5):
            TrustStore(store.path).trust(tmp_path / f"{number}-{each}", "x")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(trust, range(8)))
    assert len(store.files()) == 40


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────


def servers_json(**servers: object) -> str:
    return json.dumps({"mcpServers": servers})


def test_servers_come_from_the_project_and_from_the_user_who_comes_first(tmp_path: Path) -> None:
    project, own = tmp_path / "project", tmp_path / "own"
    (project / "inner").mkdir(parents=True)
    (project / ".git").mkdir()
    own.mkdir()
    (project / ".mcp.json").write_text(
        servers_json(
            both={"command": "evil"},
            here={"command": "run", "cwd": "sub", "trusted": True},
            web={"url": "https://x"},
        )
    )
    (own / "mcp.json").write_text(servers_json(both={"command": "mine"}, json={"command": "j"}))
    tables = {"own.toml": {"both": {"command": "toml"}, "toml": {"command": "t", "trusted": True}}}
    found = find_servers(project / "inner", own, tables, environ={"A": "1"})
    assert {one.settings.name: one.settings.command for one in found.own} == {
        "both": "toml",
        "json": "j",
        "toml": "t",
    }
    here, web = found.of_project()
    assert (here.settings.cwd, here.settings.trusted) == (str(project / "sub"), False)
    assert web.settings.cwd == ""
    assert here.key == f"{(project / '.mcp.json').resolve()}#here"
    assert "both" in found.warnings[0]


def test_a_dotenv_never_says_what_is_run(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("X=evil\nOPENAI_API_KEY=theirs\nNESTED=${OPENAI_API_KEY}\n")
    entry = {
        "command": "${X:-npx}",
        "args": ["${X:-safe}"],
        "cwd": "${X:-.}",
        "env": {"GREETING": "${X:-hello}", "NODE_OPTIONS": "${X:-}", "PATH": "${X:-/bin}", "N": "${NESTED}"},
    }
    web = {"url": "http://${X:-good}.example", "headers": {"X-Team": "${X:-us}"}}
    environ = {"OPENAI_API_KEY": "mine"}
    found = find_servers(tmp_path, tmp_path / "own", {"own.toml": {"a": entry, "b": web}}, environ)
    made = (one.settings.expanded(found.variables, found.data_variables) for one in found.own)
    b, a = sorted(made, key=lambda one: one.command)
    assert (a.command, a.args, a.cwd) == ("npx", ("safe",), ".")
    assert a.env == {"GREETING": "evil", "NODE_OPTIONS": "", "PATH": "/bin", "N": "${OPENAI_API_KEY}"}
    assert (b.url, b.headers) == ("http://good.example", {"X-Team": "evil"})


def test_a_projects_list_that_cannot_be_read_stops_nothing_but_ones_own_does(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": 7}}')
    found = find_servers(tmp_path, tmp_path / "own", {})
    assert found.file is None
    assert "'a' must be an object" in found.warnings[0]
    with pytest.raises(ConfigError, match="'a' must be"):
        find_servers(tmp_path, tmp_path / "own", {"own.toml": {"a": 7}})


def test_a_projects_glassloop_toml_cannot_name_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("GLASSLOOP_CONFIG_DIR", str(own))
    said = '[mcp.servers.a]\ncommand = "run"\nargs = ["-x"]\n'
    (tmp_path / "glassloop.toml").write_text(said)
    config = load(folder=tmp_path)
    assert config.mcp_servers == {}
    assert "mcp.servers is left out" in " ".join(config.warnings)
    (own / "glassloop.toml").write_text(said)
    assert list(load(folder=tmp_path).mcp_servers.values()) == [{"a": {"command": "run", "args": ["-x"]}}]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_project_ends_at_its_repository_or_below_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    deep = home / "a" / "b" / "c"
    deep.mkdir(parents=True)
    outside = tmp_path / "shared" / "x"
    outside.mkdir(parents=True)
    assert folders_above(deep, home) == [home / "a", home / "a" / "b", deep]
    assert folders_above(home, home) == [home]
    assert folders_above(outside, home) == [outside]
    (home / "a" / "b" / ".git").mkdir()
    assert folders_above(deep, home) == [home / "a" / "b", deep]


def test_agents_files_are_read_from_the_root_down_and_cut(tmp_path: Path) -> None:
    project, own = tmp_path / "p", tmp_path / "own"
    (project / "sub").mkdir(parents=True)
    (project / ".git").mkdir()
    own.mkdir()
    (own / "AGENTS.md").write_text("mine")
    (project / "AGENTS.md").write_text("root\u200b \x1b[31mrules")
    (project / "sub" / "AGENTS.md").write_text("x" * (LONGEST_AGENTS_FILE + 5))
    found = agents_files(project / "sub", own)
    assert [(one.path.parent.name, one.own) for one in found] == [("own", True), ("p", False), ("sub", False)]
    text = instructions_of(found)
    assert f"From {project / 'AGENTS.md'}:\n\nroot rules" in text
    assert "[5 characters left out here]" in text
    (project / "sub" / "AGENTS.md").write_bytes(b"\xff\xfe\x00binary")
    assert len(agents_files(project / "sub", own)) == 2
    assert instructions_of([]) == ""
    assert "own" in instructions_of([ProjectText(own / "AGENTS.md", "mine", own=True)])


def skill(folder: Path, name: str, front: str, body: str = "Do it so.") -> Path:
    at = folder / name
    at.mkdir(parents=True)
    (at / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n", "utf-8")
    return at


def test_skills_are_found_in_all_their_places_and_the_projects_come_first(tmp_path: Path) -> None:
    project, own, home = tmp_path / "p", tmp_path / "own", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    skill(project / ".glassloop/skills", "a", "name: deploy\ndescription: How we deploy.")
    skill(project / ".claude/skills", "b", "name: review\ndescription: >\n  How we\n  review.\nlicense: MIT")
    skill(project / ".agents/skills", "c", 'description: "Named by its folder."')
    skill(home / ".claude/skills", "deploy", "name: deploy\ndescription: Another.")
    skill(own / "skills", "mine", "name: mine\ndescription: My own.")
    skill(project / ".agents/skills", "bad", "name: no good name!\ndescription: x")
    skill(project / ".agents/skills", "empty", "name: empty")
    (skill(project / ".agents/skills", "plain", "x") / "SKILL.md").write_text("no front matter")
    found, warnings = find_skills(project, own, home)
    assert {(one.name, one.description, one.own) for one in found} == {
        ("deploy", "How we deploy.", False),
        ("review", "How we review.", False),
        ("c", "Named by its folder.", False),
        ("mine", "My own.", True),
    }
    assert len(warnings) == 3
    assert "- review: How we review." in listed(found)
    assert "Do it so" not in listed(found)
    assert listed([]) == ""


def test_a_skill_gives_what_was_trusted_and_nothing_from_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "secret.md").write_text("key")
    at = skill(tmp_path / ".agents/skills", "s", "name: s\ndescription: d", "Read reference.md.")
    (at / "more").mkdir()
    (at / "more" / "reference.md").write_text("the reference")
    (at / "picture.png").write_bytes(b"\x89PNG\xff")
    (at / "link.md").symlink_to(tmp_path / "secret.md")
    (at / "all").symlink_to(tmp_path)
    ((found,), _) = find_skills(tmp_path, tmp_path / "own", tmp_path / "home")
    assert list(found.files) == ["more/reference.md"]
    read = read_skill_of({found.name: {"": found.body, **found.files}})
    os.remove(at / "SKILL.md")
    assert read("s").startswith("Read reference.md.\n\n(Further files of this skill: more/reference.md)")
    assert read("s", "more/reference.md") == "the reference"
    for name, file in (("s", "link.md"), ("s", "../../../secret.md"), ("s", "/etc/passwd"), ("t", "")):
        with pytest.raises(LookupError):
            read(name, file)


def test_a_folder_full_of_skills_and_files_is_looked_through_only_so_far(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for number in range(230):
        skill(
            tmp_path / ".agents/skills", f"s{number}", f"name: s{number}\ndescription: {'d' * (number % 2)}"
        )
    at = tmp_path / ".agents/skills" / "s1"
    for number in range(150):
        (at / f"{number}.md").write_text("x")
    found, warnings = find_skills(tmp_path, tmp_path / "own", tmp_path / "home")
    assert (len(found), len(warnings)) == (100, 100)
    assert max(len(one.files) for one in found) == 100


def test_a_change_in_any_file_of_a_skill_ends_its_trust(tmp_path: Path, store: TrustStore) -> None:
    at = skill(tmp_path / ".agents/skills", "s", "name: s\ndescription: d")
    (at / "a.md").write_text("one")
    ((before,), _) = find_skills(tmp_path, tmp_path / "own", tmp_path / "home")
    store.trust(before.path, before.text)
    (at / "a.md").write_text("two")
    ((after,), _) = find_skills(tmp_path, tmp_path / "own", tmp_path / "home")
    assert store.standing(after.path, after.text) == "changed"
