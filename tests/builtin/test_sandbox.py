"""The sandbox from the inside: what a program in it can see, change and reach. And what happens where there is none."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builtin.sandboxed import needs_bubblewrap, nothing_left

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin import sandbox as sandboxes
from glassloop.tools.builtin.process import Ended
from glassloop.tools.builtin.rooted import root_at
from glassloop.tools.builtin.rooted_names import Refused
from glassloop.tools.builtin.sandbox import NoSandbox
from glassloop.tools.builtin.sandbox_bubblewrap import wrapper
from glassloop.tools.builtin.sandbox_confines import Confines, Guards, guarded
from glassloop.tools.builtin.sandbox_place import Job, Place, place_from, search_path
from glassloop.tools.builtin.sandbox_seatbelt import wrap as seatbelt


def inside(root: Path, script: str, seconds: float = 20, **options: str) -> Ended:
    place = place_from({"files_root": str(root), **options})

    async def run() -> Ended:
        await place.sandbox()
        return await place.run(Job(("bash", "-c", script), root, asyncio.timeout(seconds), seconds))

    return asyncio.run(run())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def repository(project: Path) -> Path:
    for words in (["init", "-q"], ["config", "user.name", "a"], ["config", "user.email", "a@b.example"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    return project


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


@needs_bubblewrap
def test_the_project_can_be_written_and_what_is_written_stays(project: Path) -> None:
    assert inside(project, "mkdir a && echo hi > a/b && cat a/b").output == "hi\n"
    assert (project / "a" / "b").read_text() == "hi\n"


UNSEEN = [
    "/etc/passwd",
    "/etc/shadow",
    "/home",
    "/var",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/mnt",
    "/sys",
]


@needs_bubblewrap
def test_there_is_no_home_no_other_folder_and_no_password_file(project: Path) -> None:
    (project.parent / "project-evil").mkdir()
    (project.parent / "secret").write_text("sk-secret")
    (project / "link").symlink_to(project.parent / "secret")
    (project / "etc").symlink_to("/etc")
    script = "; ".join(f"[ -e {path} ] && echo seen {path}" for path in UNSEEN)
    script += f"; ls ..; cat link ../secret etc/shadow {Path.home()}/.bashrc; echo $HOME"
    ended = inside(project, script)
    assert "seen" not in ended.output
    assert "secret\n" not in ended.output.replace("No such file", "")
    assert "sk-secret" not in ended.output
    assert ended.output.endswith("/tmp\n")
    assert ended.output.startswith("project\n")


@needs_bubblewrap
def test_nothing_outside_the_project_and_its_own_tmp_can_be_written(project: Path) -> None:
    script = "for at in / /usr /etc /dev /proc /bin /opt ..; do echo x > $at/x && echo wrote $at; done"
    ended = inside(project, f"{script}; echo x > /tmp/x && echo tmp; echo x > /dev/shm/x && echo shm")
    wrote = [line for line in ended.output.splitlines() if "x:" not in line]
    assert wrote == ["wrote ..", "tmp", "shm"]  # the folder around the project is in its own /tmp here
    assert not (project.parent / "x").exists()
    assert not Path("/tmp/x").exists()
    assert not Path("/dev/shm/x").exists()


@needs_bubblewrap
def test_no_setting_of_the_machine_can_be_written(project: Path) -> None:
    """Not even by root, whose name for the handler of core dumps would be run outside."""
    same = 'v=$(cat {0}); echo "$v" > {0}'.format("/proc/sys/kernel/core_pattern")
    written = inside(project, same)
    assert written.code != 0
    assert "core_pattern: Read-only file system" in written.output


@needs_bubblewrap
def test_its_own_tmp_is_empty_and_limited(project: Path) -> None:
    ended = inside(project, "find /tmp -xdev -type f; df --output=size -B1 /tmp /dev/shm")
    assert ended.output.split()[1:] == [str(1 << 30)] * 2


@needs_bubblewrap
def test_folders_that_a_user_names_can_be_read_and_not_written(project: Path) -> None:
    tools = project.parent / "tools"
    tools.mkdir()
    (tools / "f").write_text("hello\n")
    ended = inside(project, f"cat {tools}/f; echo x > {tools}/g", sandbox_read=str(tools))
    assert ended.output.startswith("hello\n")
    assert not (tools / "g").exists()


@needs_bubblewrap
def test_a_readable_folder_around_the_project_does_not_make_it_read_only(project: Path) -> None:
    assert inside(project, "echo x > f", sandbox_read=str(project.parent)).code == 0
    assert (project / "f").exists()


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────


@needs_bubblewrap
def test_no_key_is_in_any_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ended = inside(project, "env; cat /proc/self/environ /proc/[0-9]*/environ; ps axe 2>/dev/null")
    assert "sk-secret" not in ended.output


@needs_bubblewrap
def test_a_key_file_at_the_top_of_the_project_is_not_shown(project: Path) -> None:
    (project / ".env").write_text("KEY=sk-secret")
    (project / ".ssh").mkdir()
    (project / ".ssh" / "id").write_text("sk-secret")
    ended = inside(
        project, "cat .env; cat .ssh/id; cp .env x; ln .env y; mv .env z; rm -f .env; echo evil > .env"
    )
    assert "sk-secret" not in ended.output
    assert (project / ".env").read_text() == "KEY=sk-secret"
    assert not list(project.glob("[xyz]"))


# ── protected places ─────────────────────────────────────────────────────────────────────────────────

PLACES = [".env", "glassloop.toml", ".mcp.json", ".git/hooks/pre-commit", ".git/config"]
ATTACKS = {
    "write": "mkdir -p $(dirname {0}); echo evil > {0}",
    "move something there": "echo evil > x; mkdir -p $(dirname {0}); mv -f x {0}",
    "remove what holds it": "rm -rf {0}; rmdir {0}; echo evil > {0}",
    "move the folder away": "mv .git .away; mkdir -p .git/hooks; mkdir -p $(dirname {0}); echo evil > {0}",
    "a link": "echo evil > x; ln -sfn x {0}",
}


@needs_bubblewrap
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_protected_places_cannot_be_made_where_they_do_not_exist_yet(attack: str, project: Path) -> None:
    inside(project, "\n".join(attack.format(place) for place in PLACES))
    assert [place for place in PLACES if os.path.lexists(project / place)] == []
    assert not (project / ".git").exists()


@needs_bubblewrap
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_protected_places_cannot_be_changed_where_they_do(attack: str, repository: Path) -> None:
    for name in ("glassloop.toml", ".mcp.json", ".env", ".git/hooks/pre-commit", "mcp.json", ".vscode"):
        (repository / name).write_text("good")
    config = (repository / ".git" / "config").read_text()
    inside(repository, "\n".join(attack.format(place) for place in [*PLACES, "mcp.json", ".vscode"]))
    for name in ("glassloop.toml", ".mcp.json", ".env", ".git/hooks/pre-commit", "mcp.json", ".vscode"):
        assert (repository / name).read_text() == "good"
    assert (repository / ".git" / "config").read_text() == config


@needs_bubblewrap
def test_git_works_on_the_repository_and_does_not_run_what_it_names(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", "touch watched"], cwd=repository, check=True)
    script = "echo a > a && git add a && git commit -qm one && git status --short && git log --format=%s"
    assert inside(repository, script).output == "one\n"
    assert sorted(path.name for path in repository.iterdir()) == [".git", "a"]


@needs_bubblewrap
def test_a_repository_cannot_be_sent_elsewhere_for_its_settings(repository: Path) -> None:
    inside(repository, "mkdir evil; echo ../evil > .git/commondir; echo > .git/config.worktree")
    assert not (repository / ".git" / "commondir").exists()
    assert not (repository / ".git" / "config.worktree").exists()


@pytest.mark.parametrize("name", [".env", ".git", "glassloop.toml"])
def test_a_protected_place_that_is_a_link_cannot_be_guarded_so_nothing_runs(name: str, project: Path) -> None:
    (project / name).symlink_to("elsewhere")
    with (
        pytest.raises(Refused, match="is a symbolic link, and a sandbox cannot guard one"),
        guarded(root_at(project)),
    ):
        pass


def test_places_are_held_until_the_last_has_gone_and_what_a_crash_left_is_taken_over(project: Path) -> None:
    root = root_at(project)
    (project / ".env").mkdir()  # a crash left it
    with guarded(root):
        with guarded(root) as second:
            assert {path.name for path in second.fixed} == {".env", "glassloop.toml", ".mcp.json", ".git"}
        assert (project / ".env").is_dir()
    assert list(project.iterdir()) == []


def test_what_a_person_puts_into_a_held_place_is_kept(project: Path) -> None:
    with guarded(root_at(project)):
        (project / ".git" / "HEAD").write_text("mine")
    assert [path.name for path in project.iterdir()] == [".git"]


# ── the network, other processes, privileges ─────────────────────────────────────────────────────────

CONNECT = "timeout 2 bash -c 'exec 9<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo connected; true"


@needs_bubblewrap
def test_there_is_no_network_unless_it_is_granted(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = CONNECT.format(port=server.getsockname()[1])
        assert inside(project, script).output == ""
        assert inside(project, script, sandbox_network="yes").output == "connected\n"
    assert "lo" in inside(project, "cat /proc/net/dev").output
    assert inside(project, "cat /proc/net/dev").output.count(":") == 1


@needs_bubblewrap
def test_sockets_of_agents_and_engines_cannot_be_reached(project: Path) -> None:
    path = project.parent / "agent.sock"
    with socket.socket(socket.AF_UNIX) as plain, socket.socket(socket.AF_UNIX) as abstract:
        plain.bind(str(path))
        plain.listen()
        abstract.bind(f"\0glassloop-test-{os.getpid()}")
        abstract.listen()
        code = (
            "import socket\n"
            f"for name in ({str(path)!r}, '\\0glassloop-test-{os.getpid()}'):\n"
            "    try: socket.socket(socket.AF_UNIX).connect(name); print('connected')\n"
            "    except OSError as error: print('refused')\n"
        )
        (project / "try.py").write_text(code)
        output = inside(project, f"{sys.executable} try.py").output
    assert output == "refused\nrefused\n"


@needs_bubblewrap
def test_other_processes_are_invisible_and_there_are_no_privileges(project: Path) -> None:
    script = (
        "ls -d /proc/[0-9]* | wc -l; grep -h Cap /proc/self/status; grep NoNewPrivs /proc/self/status;"
        "mount -o remount,rw /usr && echo did; mount -t tmpfs x $PWD && echo did; unshare -Ur true && echo did;"
        "nsenter -t 1 -m true && echo did; chroot / true && echo did; umount /tmp && echo did; echo end"
    )
    lines = inside(project, script).output.splitlines()
    assert int(lines[0]) < 10
    assert {line.split()[1] for line in lines[1:6]} == {"0" * 16}
    assert lines[6].split() == ["NoNewPrivs:", "1"]
    assert lines[-1] == "end"
    assert "did" not in lines


@needs_bubblewrap
def test_a_bomb_of_processes_is_stopped_and_all_of_it_is_gone(project: Path) -> None:
    with nothing_left(project):
        bomb = "i=0; while [ $i -lt 400 ]; do (sleep 60; sleep 60) & i=$((i+1)); done; wait"
        ended = inside(project, f"{bomb}", seconds=1.5)
    assert ended.out_of_time or "fork" in ended.output  # root is not limited in number


@needs_bubblewrap
@pytest.mark.parametrize(
    "script", ["setsid setsid sleep 60 & sleep 60", "env -i setsid sleep 60 & exec sleep 60"]
)
def test_nothing_escapes_from_the_sandbox_by_leaving_its_group_or_environment(
    script: str, project: Path
) -> None:
    with nothing_left(project):
        assert inside(project, script, seconds=0.5).out_of_time


# ── which one, and none ──────────────────────────────────────────────────────────────────────────────


def broken(root: Path, monkeypatch: pytest.MonkeyPatch, program: str | None) -> Place:
    """A place on a machine where bubblewrap is this program, or is not installed."""
    found = (
        []
        if program is None
        else [sandboxes.Sandbox("bubblewrap", wrapper(program, ()), guarded, isolated=True)]
    )
    monkeypatch.setattr("glassloop.tools.builtin.sandbox_place.candidates", lambda: found)
    return place_from({"files_root": str(root)})


def test_where_none_is_installed_the_reason_and_the_way_out_are_told(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoSandbox, match=r"no bubblewrap is installed\. Nothing ran.*sandbox=none"):
        asyncio.run(broken(project, monkeypatch, None).sandbox())


def test_one_that_is_installed_but_cannot_start_is_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = project.parent / "bwrap"
    failing.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    failing.chmod(0o755)
    with pytest.raises(
        NoSandbox, match=r"bubblewrap: bwrap: setting up uid map: Permission denied.*Nothing ran"
    ):
        asyncio.run(broken(project, monkeypatch, str(failing)).sandbox())
    with pytest.raises(NoSandbox, match="No such file"):
        asyncio.run(broken(project, monkeypatch, "/nowhere/bwrap").sandbox())


def test_without_a_sandbox_only_by_choice(project: Path) -> None:
    place = place_from({"files_root": str(project), "sandbox": "none"})
    found = asyncio.run(place.sandbox())
    assert found.described(place.confines) == "no sandbox"
    assert place.warning == " and no sandbox confines it"


WRONG = [
    ({"sandbox": "docker"}, "sandbox is 'docker'. Choose one of auto, accept_none, none"),
    ({"sandbox_network": "true"}, "sandbox_network is 'true'. Write yes or no"),
    ({"sandbox_read": "relative"}, "sandbox_read names relative, which is no folder"),
    ({"files_root": "~"}, "Programs would be given the whole home folder"),
    ({"files_root": "/"}, "would see the system itself"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_options_that_cannot_work_are_refused(options: dict[str, str], words: str, project: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        place_from({"files_root": str(project), **options})
    assert words in str(raised.value)


def test_programs_are_looked_for_in_system_folders_and_granted_ones_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = project.parent / "granted"
    monkeypatch.setenv("PATH", f"{granted}/bin:{project}/bin:{project.parent}/other:.:/usr/bin")
    confines = Confines(root_at(project), readable=(granted,))
    assert search_path(confines).split(":")[:2] == [f"{granted}/bin", "/usr/local/sbin"]
    assert str(project) + "/" not in search_path(confines)


def test_a_seatbelt_profile_names_paths_only_by_parameter(project: Path) -> None:
    confines = Confines(root_at(project), network=False, readable=(Path('/a") (allow default) ("'),))
    guards = Guards(fixed=(project / ".mcp.json",), hidden=(project / ".env",), pinned=(project / ".git",))
    words = seatbelt(["ls"], confines, guards, project, project.parent)
    profile = words[words.index("-p") + 1]
    assert "allow default" not in profile
    assert "network" not in profile
    assert profile.index('(deny file-write* (subpath (param "FIXED0")))') > profile.index('"WRITE0"')
    assert f"FIXED0={project}/.mcp.json" in words
    assert words[-1] == "ls"
