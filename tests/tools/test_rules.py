"""Rules on calls: what they cover, which of them wins, and what is told where one is mistyped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from glassloop.core.entries import ToolCall
from glassloop.core.errors import ConfigError
from glassloop.tools import builtin
from glassloop.tools.rules import Rules, idle, rules, suggested
from glassloop.tools.targets import Address
from glassloop.tools.tool import Tool
from glassloop.tools.toolbox import Toolbox

TEXTS = {"type": "object", "properties": {name: {"type": "string"} for name in ("url", "path")}}
MAIL = {"type": "object", "properties": {"to": {"type": "string"}}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("docs/deep", "docs-evil", "src"):
        (tmp_path / "work" / folder).mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to(tmp_path / "work" / "src")
    (tmp_path / "work" / "docs" / "out").symlink_to(tmp_path / "work" / "src")
    (tmp_path / "work" / "docs" / "escape").symlink_to("/etc")
    return tmp_path / "work"


def outcome(project: Path, name: str, arguments: Mapping[str, Any], **given: Any) -> str:
    options = {"files_root": str(project)}
    tools = [*builtin.load("files", options), *builtin.load("shell", options), mail(), fetch()]
    box = Toolbox(tools, policy=rules(folder=project, **given))
    verdict = box.prepare(ToolCall("c1", name, arguments))
    return (
        "deny" if verdict.outcome == "problem" and "is not allowed here" in verdict.text else verdict.outcome
    )


def mail() -> Tool:
    return Tool("send_mail", "Send it.", MAIL, dict, origin="file", needs=("send",))


def fetch() -> Tool:
    return Tool("fetch", "Fetch it.", TEXTS, dict, origin="file", needs=("network",))


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": "x"}


def run(command: str) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": command}


def get(url: str) -> tuple[str, dict[str, Any]]:
    return "fetch", {"url": url}


# ── what an allow rule covers ────────────────────────────────────────────────────────────────────────

COVERED = [
    ("write_file", write("anything.md")),
    ("files", write("anything.md")),
    ("write_*", write("anything.md")),
    ("write_file: docs/**", write("docs/deep/a.md")),
    ("write_file: docs/", write("docs/a.md")),
    ("write_file: ./docs/**", write("docs//./a.md")),
    ("write_file: docs/*.md", write("docs/a.md")),
    ("write_file: docs/a.md", write("docs/a.md")),
    ("write_file: [[]slug]/**", write("[slug]/a.py")),
    ("files: docs/**", ("move_file", {"source": "docs/deep", "target": "docs/other"})),
    ("shell: git status", run("git status")),
    ("shell: git status", run("'git'   \"status\"")),
    ("shell: git diff ...", run("git diff HEAD~1 -- docs/a.md")),
    ("run_command: ls ...", run("ls -la docs")),
    ("send_mail: to=ada@example.org", ("send_mail", {"to": "ada@example.org"})),
    ("fetch: example.org", get("https://example.org/a?b=c")),
    ("fetch: example.org", get("HTTP://EXAMPLE.org:8080/")),
    ("fetch: *.example.org", get("https://docs.example.org/")),
    ("fetch: https://example.org", get("https://example.org/any/thing")),
    ("fetch: https://example.org/docs/**", get("https://example.org/docs/a/b")),
]

NOT_COVERED = [
    ("write_file: link/**", write("src/a.py")),
    ("write_file: link", write("src")),
    ("write_file: docs/out/**", write("src/a.py")),
    ("read_file", write("a.md")),
    ("write_file: docs/**", write("docs-evil/a.md")),
    ("write_file: docs/**", write("src/a.md")),
    ("write_file: docs/**", write("docs/../src/a.md")),
    ("write_file: docs/**", write("docs/out/a.md")),
    ("write_file: docs/**", write("docs/escape/a.md")),
    ("write_file: docs/**", write("DOCS/a.md")),
    ("write_file: docs/**", write("/docs/a.md")),
    ("write_file: docs/*.md", write("docs/deep/a.md")),
    ("files: docs/**", ("move_file", {"source": "docs/deep", "target": "src/deep"})),
    ("shell: git status", run("git status -s")),
    ("shell: git diff ...", run("git diff --output=/etc/x")),
    ("shell: git diff ...", run("git diff -o x")),
    ("shell: git diff ...", run("git difftool")),
    ("shell: git ...", run("git -c core.pager=evil log")),
    ("shell: git ...", run("git --exec-path=. log")),
    ("send_mail: to=ada@example.org", ("send_mail", {"to": "ada@example.org.evil"})),
    ("fetch: example.org", get("https://example.org.evil.net/")),
    ("fetch: example.org", get("https://evil.net/example.org")),
    ("fetch: example.org", get("https://example.org@evil.net/")),
    ("fetch: example.org", get("https://evil.net\\@example.org/")),
    ("fetch: example.org", get("https://sub.example.org/")),
    ("fetch: *.example.org", get("https://evilexample.org/")),
    ("fetch: example.org", get("ftp://example.org/")),
    ("fetch: https://example.org", get("http://example.org/")),
    ("fetch: https://example.org/docs/**", get("https://example.org/docs/../admin")),
    ("fetch: https://example.org/docs/**", get("https://example.org/docs/%2e%2e/admin")),
    ("fetch: https://example.org/docs/**", get("https://example.org/docs-evil")),
    ("effect: read", write("a.md")),
]


@pytest.mark.parametrize(("text", "call"), COVERED)
def test_an_allow_rule_lets_what_it_names_run(text: str, call: Any, project: Path) -> None:
    assert outcome(project, *call) == "ask"
    assert outcome(project, *call, allow=[text]) == "ready"


@pytest.mark.parametrize(("text", "call"), NOT_COVERED)
def test_an_allow_rule_covers_nothing_beside_it(text: str, call: Any, project: Path) -> None:
    assert outcome(project, *call, allow=[text]) == "ask"


SMUGGLED = [
    "git status; rm -rf x",
    "git status && rm -rf x",
    "git status || rm x",
    "git status | sh",
    "git status & rm x",
    "git status\nrm x",
    "git status\rrm x",
    "git status `rm x`",
    "git status $(rm x)",
    'git status "$(rm x)"',
    "git status ${IFS}x",
    "git status > /etc/x",
    "git status 2>&1",
    "git status < x",
    "git status <(rm x)",
    "git status <<EOF\nx\nEOF",
    "GIT_PAGER=evil git status",
    "git status *",
    "git status ~/x",
    "git status {a,b}",
    "git status # x\nrm x",
    "git status \u2028 rm x",
    "git status \u00a0rm",
    "(git status)",
    "{ git status; }",
    "! git status",
    "alias git=rm",
    "eval git status",
    "exec git status",
    "command git status",
    ". git status",
    "git status \\",
    "git\u200b status",
    "cd /; git status",
]


@pytest.mark.parametrize("command", SMUGGLED)
@pytest.mark.parametrize("text", ["shell: git status", "shell: git status ..."])
def test_a_shell_rule_matches_no_command_that_only_a_shell_understands(
    command: str, text: str, project: Path
) -> None:
    assert outcome(project, *run(command), allow=[text]) == "ask"


# ── what ask and deny rules reach ────────────────────────────────────────────────────────────────────

CONCERNED = [
    ("write_file: docs/**", write("DOCS/a.md")),
    ("write_file: docs/**", write("Docs/deep/a.md")),
    ("write_file: src/**", write("docs/out/a.md")),
    ("write_file: link/**", write("src/a.py")),
    ("move_file: docs/deep/**", ("move_file", {"source": "docs", "target": "other"})),
    ("files: docs/deep/*.md", ("delete_file", {"path": "docs/deep"})),
    ("files: src/**", ("move_file", {"source": "docs/deep", "target": "src/deep"})),
    ("files: src/**", ("search_files", {"text": "x", "path": "src"})),
    ("shell: rm", run("ls; rm -rf x")),
    ("shell: rm", run("sudo /bin/rm x")),
    ("shell: rm", run('r"m" x')),
    ("shell: rm", run("echo `rm x`")),
    ("shell: git push", run("true && git push origin")),
    ("fetch: example.org", get("https://EXAMPLE.org/")),
    ("send_mail: to=ada@example.org", ("send_mail", {"to": "ada@example.org"})),
    ("needs: send", ("send_mail", {"to": "x"})),
    ("effect: once", run("ls")),
]


@pytest.mark.parametrize(("text", "call"), CONCERNED)
def test_a_deny_rule_reaches_its_subject_however_it_is_spelled(text: str, call: Any, project: Path) -> None:
    everything = ["files", "shell", "send_mail", "fetch"]
    assert outcome(project, *call, allow=everything) == "ready"
    assert outcome(project, *call, allow=everything, deny=[text]) == "deny"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"allow": ["write_file"], "ask": ["write_file"], "deny": ["write_file"]}, "deny"),
        ({"allow": ["write_file: docs/**"], "ask": ["write_file"]}, "ask"),
        ({"allow": ["write_file"], "ask": ["write_file: src/**"]}, "ready"),
        ({"allow_after_untrusted": ["write_file"], "ask": ["write_file"]}, "ask"),
        ({"allow_after_untrusted": ["write_file"]}, "ready"),
        ({}, "ask"),
    ],
)
def test_deny_wins_over_ask_over_allow(given: Any, wanted: str, project: Path) -> None:
    assert outcome(project, *write("docs/a.md"), **given) == wanted


def test_a_rule_for_a_kind_of_tools_never_answers_a_question_of_the_tool_itself(project: Path) -> None:
    key = ("read_file", {"path": "id_rsa"})
    assert outcome(project, *key, allow=["effect: read"]) == "ask"
    assert outcome(project, *key, allow=["read_file"]) == "ready"


def test_a_rule_with_an_asterisk_takes_in_tools_of_the_server_it_names_and_of_no_other(project: Path) -> None:
    def ruled(rule: str, name: str) -> str:
        box = Toolbox(
            [Tool(name, "It.", TEXTS, dict, origin="mcp")], policy=rules(allow=[rule], folder=project)
        )
        return box.prepare(ToolCall("c1", name, {})).outcome

    assert ruled("github__*", "github__issues") == "ready"
    assert ruled("git*", "github__issues") == "ask"


def test_a_denial_names_its_rule_to_the_model(project: Path) -> None:
    box = Toolbox([mail()], policy=rules(deny=["send_mail: to=boss@x.org"], folder=project))
    verdict = box.prepare(ToolCall("c1", "send_mail", {"to": "boss@x.org"}))
    assert verdict.text == "`send_mail` is not allowed here: the rule `send_mail: to=boss@x.org` denies it"


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────────

MISTYPED = {
    "": "is no rule",
    "write file": "is no rule",
    "write_file:": "is no rule",
    "effect: write": "one of read, idempotent, once",
    "needs: money": "one of network, exec, send",
    "shell: git status | sh": "no rule for a command",
    "shell: ... git": "no rule for a command",
    "write_file: ../x": "`..` is not allowed",
}


@pytest.mark.parametrize("text", MISTYPED)
def test_a_mistyped_rule_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        rules(allow=[text])
    assert MISTYPED[text] in str(refused.value)


def test_a_rule_that_can_match_nothing_is_told(project: Path) -> None:
    written = Rules(
        allow=("read_fiel", "github__*", "write_file: docs/**", "effect: read", "calculator: 1 + 1"),
        deny=("send_mail: to=x", "send_mail: x"),
    )
    told = idle(written, [mail(), *builtin.load("calculator")])
    assert [each.split("'")[1] for each in told] == [
        "read_fiel",
        "github__*",
        "calculator: 1 + 1",
        "send_mail: x",
    ]


# ── what is offered to a person ──────────────────────────────────────────────────────────────────────

OFFERED = [
    (write("docs/deep/a.md"), "write_file: docs/deep/**"),
    (write("a.md"), "write_file: ./**"),
    (write("[slug]/a.md"), "write_file: [[]slug]/**"),
    (write("*/a.md"), "write_file: [*]/**"),
    (write(" docs/a.md"), None),
    (write("~root/a.md"), None),
    (("read_file", {"path": "docs/.env"}), "read_file: docs/.env"),
    (run("git log -3"), "shell: git ..."),
    (run("sh -c 'rm x'"), None),
    (run("/usr/bin/python3.11 -c x"), None),
    (run("ls | wc"), None),
    (("move_file", {"source": "docs/deep", "target": "src/x"}), None),
    (get("https://docs.example.org/x"), "fetch: docs.example.org"),
    (get("file:///etc/passwd"), None),
    (("send_mail", {"to": "x"}), "send_mail"),
]


@pytest.mark.parametrize(("call", "wanted"), OFFERED)
def test_what_is_offered_covers_the_call_and_never_what_runs_anything(
    call: Any, wanted: str | None, project: Path
) -> None:
    name, arguments = call
    options = {"files_root": str(project)}
    tools = {each.name: each for each in [*builtin.load("files", options), *builtin.load("shell", options)]}
    found = suggested({**tools, "send_mail": mail(), "fetch": fetch()}[name], arguments, project)
    assert found == wanted
    if found is not None and call != run("git log -3"):
        assert outcome(project, name, arguments, allow=[found]) == "ready"


def test_a_tool_may_say_itself_what_its_calls_are_aimed_at() -> None:
    def hosts(arguments: Mapping[str, Any]) -> tuple[Address, ...]:
        return tuple(Address(f"https://{name}/") for name in arguments["path"].split())

    ping = Tool("ping", "Ping them.", TEXTS, dict, origin="file", targets=hosts)
    box = Toolbox([ping], policy=rules(allow=["ping: a.org"]))
    outcomes = [
        box.prepare(ToolCall("c", "ping", {"path": names})).outcome for names in ("a.org", "a.org b.org", "")
    ]
    assert outcomes == ["ready", "ask", "ask"]
