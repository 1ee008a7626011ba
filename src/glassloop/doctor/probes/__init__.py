"""All probes, in the order in which they run: what later ones depend on comes first.

`connection` is it there · `answers` plain and streamed · `calls` calls and their results · `choice` tool_choice ·
`schemas` tools and their parameters · `messages` roles and history · `options` request fields · `limits` window,
errors, rates · `speed` cache, tokens a second, several at once.
"""

from __future__ import annotations

from glassloop.doctor.probe import Probe
from glassloop.doctor.probes import (
    answers,
    calls,
    choice,
    connection,
    limits,
    messages,
    options,
    schemas,
    speed,
)

PROBES: tuple[Probe, ...] = (
    *connection.FIRST,
    *answers.PROBES,
    *connection.AFTER_AN_ANSWER,
    *calls.PROBES,
    *choice.PROBES,
    *schemas.PROBES,
    *messages.PROBES,
    *options.PROBES,
    *limits.PROBES,
    *speed.PROBES,
)
QUICK: tuple[Probe, ...] = tuple(probe for probe in PROBES if probe.quick)
