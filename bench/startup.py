"""Import and start-up: CPU of the import alone, a cold process to its first answer, and the memory of one run."""

from __future__ import annotations

import envs
import measure
from table import HAND_LOOP, OURS, Outcome, Size, Target, line, main, ratio, summaries

IMPORTS = {
    "floor": "import aiohttp, pydantic",
    "glassloop": "import glassloop",
    "openai": "import openai",
    "pydantic-ai": "import pydantic_ai",
    "openai-agents": "import agents",
}


def run(size: Size) -> Outcome:
    sides = (*OURS, *size.peers)
    repeats = size.repeats * 2 + 1
    imports = {"bare Python": measure.Sample(), **{side: measure.Sample() for side in sides}}
    for _ in range(repeats):
        for side, sample in imports.items():
            code = IMPORTS.get(side, "pass")
            python = envs.python_of(side if side in IMPORTS else "glassloop")
            figures = measure.timed([str(python), "-c", code])
            sample.add({"cpu_ms": figures["process_cpu_s"] * 1e3})
    bare = imports["bare Python"].median("cpu_ms") or 0.0
    for side in sides:
        imports[side].values["over_bare_ms"] = [value - bare for value in imports[side].values["cpu_ms"]]
    with measure.Server() as server:
        cold = measure.interleaved(sides, repeats, "one_answer", server)
        memory = measure.interleaved(sides, size.repeats, "memory", server, rounds=10)
    lines = (
        *line("import, CPU over bare Python", {side: imports[side] for side in sides}, "over_bare_ms", "ms"),
        *line("cold process to first answer, CPU", cold, "process_cpu_s", "s"),
        *line("cold process to first answer, wall", cold, "process_wall_s", "s"),
        *line("peak memory of one run, 10 rounds", memory, "peak_mib", "MiB"),
    )
    targets = (
        Target("import glassloop, CPU over bare Python", imports["glassloop"].median("over_bare_ms"), 40, "ms"),
        Target("cold process to first answer, against the openai loop, CPU",
               ratio(cold, "glassloop", HAND_LOOP, "process_cpu_s"), 0.5),
        Target("cold process to first answer, against the openai loop, wall",
               ratio(cold, "glassloop", HAND_LOOP, "process_wall_s"), 0.5),
    )  # fmt: skip
    figures = {"import": summaries(imports), "cold": summaries(cold), "memory": summaries(memory)}
    return Outcome("startup", sides, figures, lines, targets)


if __name__ == "__main__":
    main(run, __doc__)
