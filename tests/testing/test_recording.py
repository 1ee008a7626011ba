"""The fixture `recorded`: asks once with `--record`, replays after that, and fails so that people know what to do."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

# Loaded here, so that the runs of pytest within the tests below need not load them anew each time.
import glassloop.agent
import glassloop.models.replay
import glassloop.testing.tape  # noqa: F401
from glassloop.testing.server import ChatServer, calls, fails, says

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
KEY = "planted-Zq8x7Vt2Lm4Nk6Rp"
SCRIPT = [calls(("look", {"city": "北京"})), says("It is 18 °C.")]
TEST = '''
from glassloop import Agent

def look(city: str) -> str:
    """Look at a city."""
    return RESULT

RESULT = "18 °C"

def test_it_looks(recorded):
    agent = Agent(recorded("URL#m"), tools=[look])
    assert agent.run_sync("How warm is it in 北京? TASK").text == "It is 18 °C."
'''


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with one test, as its author runs it: with a key in the environment."""
    monkeypatch.setenv("GLASSLOOP_CONFIG_DIR", str(pytester.path / "config"))
    monkeypatch.setenv("GLASSLOOP_API_KEY", KEY)
    return Project(pytester, monkeypatch)


class Project:
    def __init__(self, pytester, monkeypatch):
        self.pytester = pytester
        self.monkeypatch = monkeypatch
        self.recordings = pytester.path / "recordings" / "test_it"

    def write(self, text, url):
        self.url = url
        self.monkeypatch.setenv("GLASSLOOP_BASE_URL", url)
        self.pytester.makepyfile(test_it=text.replace("URL#m", "m").replace("URL", url))

    def change(self, before, now):
        path = self.pytester.path / "test_it.py"
        text = path.read_text("utf-8")
        assert before in text
        path.write_text(text.replace(before, now), "utf-8")

    def run(self, *arguments):
        """pytest with our plugin, whether this Glassloop is installed with its entry point or not."""
        plugin = ("-p", "no:glassloop", "-p", "glassloop.testing.recording", "-p", "no:cacheprovider")
        return self.pytester.runpytest_inprocess(*plugin, *arguments)

    def record(self, text=TEST, script=SCRIPT):
        with ChatServer(script) as server:
            self.write(text, server.base_url)
            result = self.run("--record")
        return result, server

    @property
    def files(self):
        return {path.name: path.read_text("utf-8") for path in sorted(self.recordings.glob("*"))}


def test_what_is_recorded_once_is_replayed_with_nobody_there(project):
    result, server = project.record()
    result.assert_outcomes(passed=1)
    assert len(server.requests) == 2
    assert list(project.files) == ["test_it_looks.jsonl"]
    project.monkeypatch.delenv("GLASSLOOP_API_KEY")  # as in CI
    project.run().assert_outcomes(passed=1)
    assert len(server.requests) == 2


def test_a_key_is_not_in_the_recording(project):
    _, server = project.record(script=[fails(429, f"busy, {KEY}", {"retry-after": "0"}), *SCRIPT])
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    (text,) = project.files.values()
    assert KEY not in text
    assert "busy, ***" in text


def test_a_missing_recording_fails_with_the_command_that_makes_it(project):
    project.write(TEST, "http://127.0.0.1:9/v1")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*no recording*test_it_looks.jsonl*pytest 'test_it.py::test_it_looks' --record*"]
    )


@pytest.mark.parametrize(("before", "now", "words"), [
    ('RESULT = "18 °C"', 'RESULT = "19 °C"', ["*request 2 of 2*", "*messages?2?.content*", "*recorded: *18 °C*", "*now: *19 °C*"]),
    ("TASK", "再见", ["*request 1 of 2*", "*messages?0?.content*", "*recorded: *TASK*", "*now: *再见*"]),
    ("Look at a city.", "See a city.", ["*tools?0?.function.description*", "*recorded: *Look at a city.*", "*now: *See a city.*"]),
])  # fmt: skip
def test_a_changed_request_fails_with_the_difference_and_the_command(project, before, now, words):
    project.record()
    project.change(before, now)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*ReplayMismatch*", *words, "*record it again: pytest 'test_it.py::test_it_looks' --record*"]
    )


def test_another_model_than_the_recorded_one_fails(project):
    project.record()
    project.change('recorded("m")', 'recorded("other")')
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*is a recording of m, and the test asks for other*--record*"])


def test_asking_for_less_than_was_recorded_fails_at_the_end(project):
    project.record()
    project.change("    assert agent.run_sync", "    return\n    assert agent.run_sync")
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*holds 2 more requests than the test has sent*--record*"])


def test_a_test_that_fails_otherwise_is_not_blamed_for_what_it_left_unasked(project):
    project.record()
    project.change("    assert agent.run_sync", "    assert False\n    assert agent.run_sync")
    project.run().assert_outcomes(failed=1)


def test_each_model_of_a_test_and_each_case_has_a_file_of_its_own(project):
    text = """
import pytest
from glassloop import Agent, Endpoint

@pytest.mark.parametrize("town", ["Oslo", "北京", "a/b"])
def test_it(recorded, town):
    one = Agent(recorded("m")).run_sync(town).text
    two = Agent(recorded(Endpoint("URL", "n"))).run_sync(town).text
    assert one == two == town

class TestAll:
    def test_it(self, recorded):
        assert Agent(recorded("m")).run_sync("x").text == "x"
"""
    result, _ = project.record(text, lambda request: says(request.body["messages"][-1]["content"]))
    result.assert_outcomes(passed=4)
    assert len(project.files) == 7
    assert {name for name in project.files if name.isascii()} == set(project.files)
    project.run().assert_outcomes(passed=4)


def test_recording_again_replaces_what_was_recorded(project):
    project.record()
    before = project.files
    project.record(TEST.replace("TASK", "now"))
    assert project.files.keys() == before.keys()
    assert "now" in str(project.files)
    project.run().assert_outcomes(passed=1)


def test_a_model_without_a_wire_cannot_be_recorded(project):
    text = """
from glassloop import ScriptedModel

def test_it(recorded):
    recorded(ScriptedModel(["hello"]))
"""
    project.write(text, "http://127.0.0.1:9/v1")
    result = project.run("--record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*speaks to no endpoint over HTTP*"])
    assert project.files == {}


def test_another_plugin_may_have_an_option_of_that_name(project):
    project.pytester.makeconftest("""
def pytest_addoption(parser):
    parser.addoption("--record", action="store", help="somebody else's")
""")
    with ChatServer(SCRIPT) as server:
        project.write(TEST, server.base_url)
        project.run("--glassloop-record").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_the_plugin_is_cheap_for_those_who_do_not_use_it():
    code = "import pytest, sys; before = set(sys.modules); import glassloop.testing.recording; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name for name in done.stdout.split() if name.startswith("glassloop")}
    assert loaded == {"glassloop", "glassloop.testing", "glassloop.testing.recording"}
    assert not {"aiohttp", "pydantic", "rich", "sqlite3", "asyncio"} & set(done.stdout.split())


def test_installing_glassloop_is_enough_to_have_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"glassloop": "glassloop.testing.recording"}
