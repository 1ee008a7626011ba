"""A pytest plugin: the fixture `recorded` makes models that are really asked once (`--record`) and replayed after that.

    def test_it_looks_before_it_answers(recorded):
        agent = Agent(recorded("openrouter:openai/gpt-oss-120b"), tools=[look])
        assert "18" in agent.run_sync("How warm is it in Tokyo?").text

pytest loads this in every project that has Glassloop installed: nothing heavy may be imported before it is used.
"""

from __future__ import annotations

import hashlib
import re
from argparse import ArgumentError
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from glassloop.models.model import Model
    from glassloop.models.replay import ReplayModel
    from glassloop.testing.tape import TapedModel

FOLDER = "recordings"
_LONGEST_NAME = 100
_failed = pytest.StashKey[bool]()


_OPTION: dict[str, Any] = {
    "action": "store_true",
    "dest": "glassloop_record",
    "help": "Ask the endpoints of `recorded` models, and write what they answer beside the tests.",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--glassloop-record`."""
    parser.getgroup("glassloop").addoption("--glassloop-record", **_OPTION)


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """`--record` for short, unless another plugin or a conftest has an option of that name: theirs comes first."""
    yield
    with suppress(ValueError, ArgumentError):
        parser.getgroup("glassloop").addoption("--record", **_OPTION)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Notes that a test has failed: then it may have left requests unasked."""
    if call.excinfo is not None:
        item.stash[_failed] = True


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Iterator[Callable[..., Model]]:
    """`recorded(model, **options)`: a model that answers from `recordings/FILE/TEST.jsonl` beside the test.

    `model` is whatever `Agent` takes for one; `options` are further arguments of `Endpoint` where it is a text. With
    `--record` it is really asked, and the recording is written anew; secrets are masked in it. Without, nothing is
    sent: a request that is not the recorded one raises `ReplayMismatch`, which shows the difference, and a test that
    asks for less than was recorded fails at its end. The second model of a test has its own file, `TEST-2.jsonl`.
    """
    studio = _Studio(request)
    yield studio.model
    studio.close(failed=request.node.stash.get(_failed, False))


class _Studio:
    """The recordings of one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._records = bool(request.config.getoption("glassloop_record"))
        self._command = f"pytest '{request.node.nodeid}' --record"
        self._stem = request.path.parent / FOLDER / request.path.stem / _file_name(_name_of(request.node))
        self._taped: list[tuple[Path, TapedModel]] = []
        self._replayed: list[tuple[Path, ReplayModel]] = []

    def model(self, model: str | Model, **options: Any) -> Model:
        """See `recorded`."""
        number = len(self._taped) + len(self._replayed) + 1
        path = Path(f"{self._stem}{'' if number == 1 else f'-{number}'}.jsonl")
        return self._tape(path, model, options) if self._records else self._replay(path, model)

    def close(self, *, failed: bool) -> None:
        """Write what was recorded; fail if less was asked than was recorded."""
        for path, taped in self._taped:
            taped.save(path)
        for path, replayed in () if failed else self._replayed:
            if left := len(replayed.unplayed):
                pytest.fail(
                    f"{path} holds {left} more requests than the test has sent. Record it again: {self._command}",
                    pytrace=False,
                )

    def _tape(self, path: Path, model: str | Model, options: dict[str, Any]) -> Model:
        from glassloop import config
        from glassloop.models.profiles import ProfileStore
        from glassloop.testing.tape import TapedModel

        found = config.load(model=model if isinstance(model, str) else None)
        # What was learned of the endpoint on this machine would not be known on another one.
        given = {"learned": ProfileStore(None), **options}
        real = config.model_of(found, **given) if isinstance(model, str) else model
        taped = TapedModel(real, _spec(model), found.secrets)
        self._taped.append((path, taped))
        return taped

    def _replay(self, path: Path, model: str | Model) -> Model:
        from glassloop import config
        from glassloop.models import recorded
        from glassloop.models.replay import ReplayModel
        from glassloop.sessions import masking

        if not path.is_file():
            pytest.fail(f"There is no recording {path}. Make it: {self._command}", pytrace=False)
        with path.open(encoding="utf-8", newline="\n") as file:
            recording = recorded.read(file)
        if recording.model != _spec(model):
            pytest.fail(
                f"{path} is a recording of {recording.model}, and the test asks for {_spec(model)}. "
                f"Record it again: {self._command}",
                pytrace=False,
            )
        secrets = config.load().secrets
        replayed = ReplayModel(
            recording.exchanges,
            masked=lambda data: masking.body(data, secrets),
            hint=f"If that is meant, record it again: {self._command}",
        )
        self._replayed.append((path, replayed))
        return replayed


def _spec(model: str | Model) -> str:
    """What names the model in its recording: what the test says."""
    return model if isinstance(model, str) else model.name


def _name_of(node: Any) -> str:
    return node.name if node.cls is None else f"{node.cls.__name__}.{node.name}"


def _file_name(name: str) -> str:
    """A name that every system takes for a file, and that no other test of the file has."""
    plain = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:_LONGEST_NAME].strip("-.")
    if re.fullmatch(r"[\w.]+", name, flags=re.ASCII) and len(name) <= _LONGEST_NAME:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
