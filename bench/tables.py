"""All tables, one after the other: `python bench/tables.py [quick|usual|full]`.

The last line says how many targets hold. Exits with 1 when one does not.
"""

from __future__ import annotations

import sys
import time

import crowd
import envs
import journal
import measure
import rounds
import sent
import server
import startup
import streaming
import textcalls
from table import FRAMEWORK, SIZES, Outcome

TABLES = (startup, sent, rounds, streaming, crowd, textcalls, journal)


def main(size_name: str) -> int:
    size = SIZES[size_name]
    for peer in {*size.peers, FRAMEWORK}:
        envs.build(peer)
    began = time.perf_counter()
    proof = server.prove()
    print(
        "The server alone: {requests_per_second:,.0f} requests/s, {cpu_us_per_request:.0f} µs each".format(
            **proof
        )
    )
    measure.save("server", (), proof)
    outcomes: list[Outcome] = []
    for table in TABLES:
        outcome = table.run(size)
        outcome.show()
        outcome.save()
        outcomes.append(outcome)
    targets = [target for outcome in outcomes for target in outcome.targets]
    print("── targets " + "─" * 83)
    print("\n".join(map(str, targets)))
    held = sum(target.holds for target in targets)
    print(f"Took {time.perf_counter() - began:.0f} s.")
    print(f"{held} of {len(targets)} targets hold.")
    return int(held < len(targets))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "usual"))
