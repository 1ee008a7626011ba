"""Settings that all tests share. Fixtures live beside the tests that use them."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Whoever starts the tests in the background may have them ignore Ctrl-C, and programs inherit that; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Here: new examples every time, kept in .hypothesis when they fail. In CI: the same examples on every run,
# and a blob that reproduces a failure anywhere. No deadlines: a slow machine is no broken rule.
settings.register_profile(
    "here", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True, scope="session")
def _no_one_elses_data() -> Iterator[None]:
    """What tests learn and keep goes to a folder of their own, never to the user's."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLASSLOOP_DATA_DIR", f"{folder}/data")
        patch.setenv("GLASSLOOP_CONFIG_DIR", f"{folder}/config")
        yield


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that are no text are named by their length: some hold the time at which they were made (gzip does), and
    test processes that collect at different seconds would disagree on the names."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        return f"{argname}-{len(val)}-bytes"
    return None
