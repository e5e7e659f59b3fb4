"""The commit protocol in thousands of drawn schedules; and defects that the schedules must find."""

from typing import Any

import msgspec
import pytest

from ledger.simulation.schedule import KINDS, BrokenPromise, Schedule
from ledger.simulation.writer import Defects
from roost.ledger import commit_steps as steps
from roost.ledger.commit_protocol import transition
from roost.ledger.commit_states import Appending
from roost.storage import DatabaseUnavailable
from support.seeds import nightly_seed

SCHEDULES = 150
"""Of each kind, in every run."""

FEW = 400
"""Schedules of a kind, of which at least one must find a planted defect."""


def simulate(kind: str, seed: int, defects: Defects = Defects(), **server: bool) -> None:  # noqa: B008
    try:
        Schedule(KINDS[kind], seed, defects, **server).run()
    except BrokenPromise as broken:
        raise BrokenPromise(f"{broken} (kind {kind!r}, seed {seed})") from broken


@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_is_kept_in_every_schedule(kind):
    for seed in range(SCHEDULES // 5 if KINDS[kind].far else SCHEDULES):
        simulate(kind, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_is_kept_in_every_schedule_at_length(kind):
    first = nightly_seed() * 1_000_000
    for seed in range(first, first + 20_000):
        simulate(kind, seed)


def test_a_seed_gives_the_same_schedule_again():
    runs = []
    for _ in range(2):
        schedule = Schedule(KINDS["everything"], 7, Defects())
        schedule.run()
        runs.append((schedule.loop.now, schedule.server.history, [call.outcome for call in schedule.calls]))
    assert runs[0][:2] == runs[1][:2]
    assert [repr(outcome) for outcome in runs[0][2]] == [repr(outcome) for outcome in runs[1][2]]


def unknown_is_failure(state: Any, event: Any, now: float) -> Any:
    if isinstance(event, steps.AppendUnknown):
        event = steps.EffectFailed(DatabaseUnavailable("taken for not written"))
    return transition(state, event, now)


def unknown_is_conflict(state: Any, event: Any, now: float) -> Any:
    if isinstance(event, steps.AppendUnknown):
        event = steps.AppendConflicted()
    return transition(state, event, now)


def nothing_to_append_is_answered(state: Any, event: Any, now: float) -> Any:
    if isinstance(event, steps.Drafted) and not event.changes:
        state = msgspec.structs.replace(state, batch=msgspec.structs.replace(state.batch, unknown=()))
    return transition(state, event, now)


def refusals_are_not_verified(state: Any, event: Any, now: float) -> Any:
    if isinstance(event, steps.Drafted):
        event = msgspec.structs.replace(event, creates_all=True)
    return transition(state, event, now)


def refused_without_a_check_is_final(state: Any, event: Any, now: float) -> Any:
    if isinstance(state, Appending) and state.unchecked:
        state = msgspec.structs.replace(state, unchecked=False)
    return transition(state, event, now)


def one_error_for_the_whole_batch(state: Any, event: Any, now: float) -> Any:
    after, effect = transition(state, event, now)
    if isinstance(effect, steps.Fail):
        effect = msgspec.structs.replace(effect, count=after.batch.size)
    return after, effect


def turns_are_never_requested(state: Any, event: Any, now: float) -> Any:
    if isinstance(state, Appending):
        batch = msgspec.structs.replace(state.batch, conflicts=0)
        state = msgspec.structs.replace(state, batch=batch)
    return transition(state, event, now)


def a_deltas_page_is_taken_for_its_end(state: Any, event: Any, now: float) -> Any:
    if isinstance(event, steps.DeltaRead):
        event = msgspec.structs.replace(event, complete=True)
    return transition(state, event, now)


def a_pause_is_not_the_end(state: Any, event: Any, now: float) -> Any:
    after, effect = transition(state, event, now)
    return (state, steps.Pause(0.01)) if isinstance(event, steps.Paused) else (after, effect)


DEFECTS: dict[str, tuple[str, Defects, bool]] = {
    "positions are compared by number alone": ("standby", Defects(takes_positions_by_number=True), True),
    "the commit before is not checked": ("trimmed", Defects(), False),
    "an unknown outcome is taken for a failure": ("cut", Defects(unknown_is_failure), True),
    "an unknown outcome is repeated": ("cut", Defects(unknown_is_conflict), True),
    "an unknown append is not fenced off": ("late", Defects(nothing_to_append_is_answered), True),
    "a refusal without a head check is not verified": ("calm", Defects(refusals_are_not_verified), True),
    "a refused unchecked append is final": ("calm", Defects(refused_without_a_check_is_final), True),
    "one command's error is given to all": ("odd", Defects(one_error_for_the_whole_batch), True),
    "turns are never requested": ("far", Defects(turns_are_never_requested), True),
    "a page of a delta is taken for its end": ("calm", Defects(a_deltas_page_is_taken_for_its_end), True),
    "a writer pauses for ever": ("far", Defects(a_pause_is_not_the_end), True),
    "readers see what is not durable": ("calm", Defects(discards=False), True),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name):
    kind, defects, checks_predecessor = DEFECTS[name]
    with pytest.raises(BrokenPromise):
        for seed in range(FEW):
            simulate(kind, seed, defects, checks_predecessor=checks_predecessor)
