"""Settings that all tests share. Fixtures live beside the tests that use them."""

import os

from hypothesis import HealthCheck, settings

# Here: new examples every time, kept in .hypothesis when they fail. In CI: the same examples on every run,
# and a blob that reproduces a failure anywhere. No deadlines: a slow machine is no broken rule.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
