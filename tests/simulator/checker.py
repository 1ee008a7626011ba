"""The invariants I1 to I5, checked from the outside log; the journal is only compared with it."""

import re
from collections import Counter

from tests.simulator.sendable import problems
from tests.simulator.world import name_of

from glassloop.core.entries import Reply, ToolResult, User
from glassloop.core.journal import entries_of
from glassloop.core.resolving import Resolution
from glassloop.hands import key_of


def check(world, stop_reason):
    """Everything that must hold when all is over. Raises `AssertionError`, naming the invariant."""
    outside = world.outside
    keys = {one.key: one for one in world.store.all_intents()}
    _i1_nothing_twice(outside)
    _i2_nothing_again(outside)
    _i3_it_ends(world, stop_reason)
    _i4_journal_is_true(world, outside, keys)
    _i5_same_transcript(world)
    for records in world.store.all_records().values():
        found = problems(entries_of(records))
        assert not found, f"sendable: {found}"


def _i1_nothing_twice(outside):
    twice = {key: times for key, times in outside.applied.items() if times > 1}
    assert not twice, f"I1: effects had twice: {twice}"


def _i2_nothing_again(outside):
    """What was acknowledged as ended does not start again, save by a process that was taken over.

    Such a one may still start what it had written down before (see I4), or read: it stood still between the two.
    """
    ended = {}
    for place, _, what in outside.of("acknowledged"):
        for run, seq, kind in what:
            if kind == "ToolResult":
                ended.setdefault(key_of(run, seq), place)
    for place, process, effect, key, taken_over in outside.of("started"):
        late = key in ended and place > ended[key]
        assert not late or taken_over, f"I2: {process} started {effect} {key[:8]} again"


def _i3_it_ends(world, stop_reason):
    assert stop_reason is not None, "I3: the run neither ends nor says what it waits for"
    assert stop_reason in ("answered", "cancelled"), f"I3: it ended as {stop_reason}"
    assert world.store.open_run is None, "I3: told as ended, and still open on disk"


def _i4_journal_is_true(world, outside, intents):
    intended = {}
    for place, _, keys in outside.of("intended"):
        for key in keys:
            intended.setdefault(key, place)
    for place, process, effect, key, _ in outside.of("started"):
        if effect != "read":
            assert intended.get(key, place) < place, (
                f"I4: {process} started {effect} before it was written down"
            )
    said = {}
    for run, records in world.store.all_records().items():
        resolved = {
            one.seq: one.value
            for one in records
            if isinstance(one.value, Resolution) and one.value.outcome != "retry"
        }
        for one in records:
            if isinstance(one.value, ToolResult):
                said[key_of(run, one.seq)] = (one.value, resolved.get(one.seq))
    for key, intent in intents.items():
        if key not in outside.applied:
            value, _ = said.get(key, (None, None))
            assert value is None or value.state != "ok", (
                f"I4: {intent.call.name} is said to be done, and never was"
            )
        else:
            assert key in said, f"I4: {intent.call.name} was done, and the journal knows of no result"
            value, resolution = said[key]
            told = value.state in ("ok", "unknown") or (
                intent.effect == "idempotent" and value.state == "refused"
            )
            assert told, f"I4: {intent.call.name} was done, and the journal says {value.state} ({resolution})"
    for key in outside.applied:
        if not _is_read(outside, key):
            assert key in intents, "I4: an effect that the journal knows nothing of"


def _i5_same_transcript(world):
    """Each run that was answered tells the plan, step by step; only what nobody knows or allowed may differ."""
    for records in world.store.all_records().values():
        entries = entries_of(records)
        if not entries or not isinstance(entries[-1], Reply) or entries[-1].tool_calls:
            continue
        if not isinstance(entries[0], User):
            continue  # somebody asked to go on when another had just ended the run: there was nothing to do
        assert sum(isinstance(one, User) for one in entries) == 1, "I5: the task stands there twice"
        told = [_told(one) for one in entries if not isinstance(one, User)]
        expected = []
        for step, planned in enumerate(world.plan):
            expected.append(f"Step {step}")
            expected += [f"{name_of(one)} {step}.{number}" for number, one in enumerate(planned)]
        expected.append(f"All done. Step {len(world.plan)}")
        assert len(told) == len(expected), f"I5: {told} instead of {expected}"
        for said, wanted in zip(told, expected, strict=True):
            assert said in (wanted, "unknown", "refused"), f"I5: {said!r} instead of {wanted!r}"


def _told(entry):
    if isinstance(entry, ToolResult):
        return entry.text if entry.state == "ok" else entry.state
    return re.sub(r", said for.*", "", entry.text)


def _is_read(outside, key):
    return any(effect == "read" and one == key for _, _, effect, one, _ in outside.of("started"))


def summary(world):
    """For people: how often what happened."""
    return Counter(one[0] for one in world.outside.log)
