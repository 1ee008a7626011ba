"""`python -m tests.simulator SEED`: play one seed again and print all that the outside saw."""

import sys

from tests.simulator import clock
from tests.simulator.checker import check
from tests.simulator.experiments import Chaos

world = Chaos(int(sys.argv[1]))
print("plan:", *([one.effect + ("?" if one.asks else "") for one in step] for step in world.plan))
try:
    stop_reason = clock.run(world.play())
finally:
    print(*world.outside.log, sep="\n")
check(world, stop_reason)
print("holds:", stop_reason)
