"""Which command lines need no shell, which rules cover them, and what people are shown of the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassloop.tools.builtin.simple_command import (
    MAX_LENGTH,
    CommandRule,
    allows,
    command_rule,
    commands_in,
    is_grave,
    mentions,
    simple_words,
)

SIMPLE = {
    "git status": ("git", "status"),
    "  ls \t -la  ": ("ls", "-la"),
    "grep 'a|b; c' file": ("grep", "a|b; c", "file"),
    'grep "it\'s" file': ("grep", "it's", "file"),
    'echo "a\\"b\\\\c\\d"': ("echo", 'a"b\\c\\d'),
    r"cat my\ file": ("cat", "my file"),
    r"echo \$HOME \;": ("echo", "$HOME", ";"),
    "echo '' \"\"": ("echo", "", ""),
    "e'ch'o hi": ("echo", "hi"),
    "git show HEAD~2 HEAD^": ("git", "show", "HEAD~2", "HEAD^"),
    "git log --since=yesterday": ("git", "log", "--since=yesterday"),
    "./run.sh --x=1": ("./run.sh", "--x=1"),
    "/usr/bin/g++ a#b": ("/usr/bin/g++", "a#b"),
    "cat 日本.txt": ("cat", "日本.txt"),
}


@pytest.mark.parametrize(("text", "words"), SIMPLE.items())
def test_a_program_with_its_words_is_simple(text: str, words: tuple[str, ...]) -> None:
    assert simple_words(text) == words


SMUGGLED = [
    "git status; rm -rf x",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status |& sh",
    "git status & rm x",
    "git status &",
    "git status\nrm x",
    "git status\rrm x",
    "git status\x0brm x",
    "git status\u2028rm x",
    "git status\u00a0x",
    "git status\u200b",
    "git status \u202egpj.exe",
    "git status\x00",
    "git status \x1b[2J",
    "git status `id`",
    "git status $(id)",
    'git status "$(id)"',
    'git status "`id`"',
    "git status $HOME",
    'git status "$HOME"',
    "git status ${IFS}x",
    "git status $'\\x41'",
    'git status $"x"',
    "git status > /etc/x",
    "git status 2>&1",
    "git status < x",
    "git status <(id)",
    "git status <<E",
    "PAGER=id git status",
    "A+=1 git status",
    "(git status)",
    "{ git status; }",
    "git {status,diff}",
    "git status *",
    "git status fil?",
    "git status [a-z]",
    "git status ~/x",
    "git status --dir=~/x",
    "~/bin/git status",
    "git status # comment",
    "# git status",
    "! git status",
    "git status 'open",
    'git status "open',
    "git status \\",
    "",
    "  \t ",
    "'' status",
    "-c status",
    "%1",
    "time git status",
    "if git status",
    "cd /",
    "export PAGER=id",
    "alias git=rm",
    "eval rm",
    "exec rm",
    "source x",
    ". x",
    "command rm",
    "builtin cd",
    "'eval' rm",
    "e\\val rm",
    "hash -p /tmp/evil git",
    "ls \u2800x",
    "ls \u3164",
    "ls x\u200by",
    "trap id EXIT",
    "x" * (MAX_LENGTH + 1),
]


@pytest.mark.parametrize("text", SMUGGLED, ids=lambda text: ascii(text)[:40])
def test_whatever_a_shell_would_read_as_more_than_words_is_not_simple(text: str) -> None:
    assert simple_words(text) is None


NASTY = st.text(st.sampled_from("ab-=:~#'\"\\ \t|;&$`(){}[]*?!<>\n^%@,./+é日"), max_size=12)


@settings(max_examples=40)
@given(st.lists(NASTY, min_size=20, max_size=40))
def test_bash_reads_the_same_words_in_whatever_is_simple(texts: list[str]) -> None:
    commands = {text: words for text in texts if (words := simple_words(text)) is not None}
    script = "told() { printf '%s\\0' \"$@\"; printf '\\1'; }\n"
    script += "\n".join(f"told {text}" for text in commands)
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, cwd=Path(__file__).parent, env={"LC_ALL": "C.UTF-8"}
    )
    told = done.stdout.decode().split("\1")[:-1]
    assert [tuple(words.split("\0")[:-1]) for words in told] == list(commands.values())


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────

RULED = [
    ("git status", "git status", True),
    ("git status", "git 'status'", True),
    ("git status", "git status -s", False),
    ("git status", "git", False),
    ("git status", "git statuses", False),
    ("git diff ...", "git diff", True),
    ("git diff ...", "git diff HEAD~1 --stat -- src", True),
    ("git diff ...", "git -c core.pager=id diff", False),
    ("git diff ...", "git --exec-path=/tmp diff", False),
    ("git diff ...", "git difftool -y -x id", False),
    ("git diff ...", "/tmp/git diff", False),
    ("git diff ...", "git diff --output=/etc/x", False),
    ("git diff ...", "git diff --output /etc/x", False),
    ("git diff ...", "git diff --outp=/etc/x", False),
    ("git diff ...", "git diff -- --output=/etc/x", False),
    ("git diff ...", "git diff '--output=x'", False),
    ("git diff ...", "git diff --ext-diff", False),
    ("git grep ...", "git grep -Oless x", False),
    ("git grep ...", "git grep -nOless x", False),
    ("git grep ...", "git grep -n x", True),
    ("git fetch ...", "git fetch --upload-pack=id", False),
    ("sort ...", "sort -o /etc/x a", False),
    ("find ...", "find . -name x", True),
    ("find ...", "find . -exec rm x", False),
    ("find ...", "find . -delete", False),
    ("ssh ...", "ssh -oProxyCommand=id host", False),
    ("git ...", "git log config", True),
    ("git ...", "git config alias.x y", False),
    ("git bisect ...", "git bisect run ./evil", False),
    ("git submodule ...", "git submodule --quiet foreach ./evil", False),
    ("git clone ...", "git clone -c core.fsmonitor=./evil a b", False),
    ("git rebase ...", "git rebase -x ./evil", False),
    ("git log ...", "git log -c --format=%x", True),
    ("tar ...", "tar -xf a.tar -I ./evil", False),
    ("tar ...", "tar --info-script=./evil -xf a", False),
    ("grep ...", "grep -cIx run a", True),
    ("sort ...", "sort --compress-program=./evil a", False),
    ("rg ...", "rg --hostname-bin=./evil x", False),
    ("fd ...", "fd . -Hx rm", False),
    ("wget ...", "wget --use-askpass=./evil x", False),
    ("rsync ...", "rsync --rsh-command=./evil a b", False),
    ("rsync ...", "rsync -e ./evil a b", False),
    ("pytest ...", "pytest -x -q -k name", True),
    ("pytest ...", "pytest -p evil", False),
    ("npm run ...", "npm run x --script-shell=./evil", False),
    ("git diff --output=a.txt ...", "git diff --output=a.txt HEAD", True),
    ("./check ...", "./check a", True),
]


@pytest.mark.parametrize(("rule", "command", "covered"), RULED)
def test_a_rule_covers_exactly_its_words_and_more_only_where_it_says_so(
    rule: str, command: str, covered: bool
) -> None:
    words = simple_words(command)
    assert words is not None
    assert allows(command_rule(rule), words) is covered


@pytest.mark.parametrize(
    "text", ["", "...", "git ... status", "git status; id", "git *", "PAGER=x git", "cd x"]
)
def test_a_rule_that_no_simple_command_could_match_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no rule for a command"):
        command_rule(text)


def test_a_rule_is_its_words() -> None:
    assert command_rule("git  diff ...") == CommandRule(("git", "diff"), more=True)
    assert command_rule("git commit -m 'a b'") == CommandRule(("git", "commit", "-m", "a b"))


@pytest.mark.parametrize("word", ["-", "--", "file", "-n", "-5", "--stat", "--color=always", "HEAD"])
def test_everyday_words_are_not_grave(word: str) -> None:
    assert not is_grave(word)


MENTIONED = [
    ("rm", "r\\\nm -rf x"),
    ("rm", "RM -rf x"),
    ("rm", "'r'm x"),
    ("rm", "r$@m x"),
    ("rm", "r${nothing}m x"),
    ("rm", "{rm,x}"),
    ("rm", "true; /bin/rm x"),
    ("rm", "x=$(rm y)"),
    ("git push", "git -c a=b -C x push"),
    ("git push", "git --no-pager push --force"),
    ("git push", "env git 'push'"),
]


@pytest.mark.parametrize(("rule", "text"), MENTIONED)
def test_what_is_denied_is_found_however_it_is_spelled(rule: str, text: str) -> None:
    assert mentions(command_rule(rule), text)


@pytest.mark.parametrize(
    ("rule", "text"), [("rm", "rmdir x"), ("rm", "ls form"), ("git push", "git stash push")]
)
def test_what_is_denied_is_not_found_in_other_words(rule: str, text: str) -> None:
    assert not mentions(command_rule(rule), text)


# ── for people ───────────────────────────────────────────────────────────────────────────────────────

SHOWN = {
    "git status": ["git status"],
    "ls; rm -rf x": ["ls", "rm -rf x"],
    "a && b || c | d & e": ["a", "b", "c", "d", "e"],
    "make 2>&1 | tail": ["make 2>&1", "tail"],
    "make &> log": ["make &> log"],
    "echo $(id) `whoami`": ["echo", "id", "whoami"],
    'echo "$(rm x)"': ["echo", "rm x"],
    "diff <(a) <(b)": ["diff", "a", "b"],
    "(cd x; ls)\nrm y": ["cd x", "ls", "rm y"],
    "grep 'a|b' \"c;d\"": ["grep 'a|b' \"c;d"],
    # where quotes cannot be believed, what they hold is shown as commands too
    "echo $'\\'' ; rm x ; echo ''": ["echo $'\\", "rm x", "echo"],
    "# it's\nrm x\n# it's": ["# it's", "rm x", "# it's"],
    "cat <<E\nit's\nE\nrm x\necho 'a'": ["cat <<E", "it's", "E", "rm x", "echo 'a"],
    '"$( " \' " )" ; rm x ; echo "\'"': ["rm x", "echo"],
}


@pytest.mark.parametrize(("text", "commands"), SHOWN.items())
def test_every_command_of_a_text_is_shown(text: str, commands: list[str]) -> None:
    assert list(commands_in(text)) == commands


def test_a_bad_command_after_sixty_harmless_ones_is_shown_like_them() -> None:
    text = "true; " * 60 + "rm -rf x"
    assert commands_in(text) == ("true",) * 60 + ("rm -rf x",)
    assert simple_words(text) is None


@given(
    st.text(st.sampled_from("ab'\"\\$`()#;|&\n <{}"), max_size=20), st.sampled_from([";", "\n", "&&", "|"])
)
def test_a_command_that_bash_would_run_is_never_hidden(before: str, operator: str) -> None:
    assert any("marker" in command for command in commands_in(f"{before}{operator}marker x"))
