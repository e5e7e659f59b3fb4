"""Differences between a decision that was made again and its record."""

from collections.abc import Sequence

import msgspec

from roost.model.record import REFUSED, Attempt, Run
from roost.scheduler.run_records import attempts_of, numbered, weighed_in
from roost.scheduler.selection.outcome import Outcome

_encode = msgspec.json.Encoder(order="deterministic").encode
_AGREED = ("instance", "ordinal", "node", "host", "cell", "weight", "version")


class DecisionDifference(msgspec.Struct, frozen=True):
    """A part of a decision that differs from the record: ``recorded`` and ``again`` are its JSON texts."""

    what: str
    recorded: str
    again: str


def differences(run: Run, attempts: Sequence[Attempt], outcome: Outcome) -> list[DecisionDifference]:
    """Return the parts of a decision whose JSON texts differ from the record's in any bit."""
    recorded = _parts(run, _own(run, attempts))
    again = _parts_of(run, outcome)
    return [
        DecisionDifference(what, recorded.get(what, "nothing"), again.get(what, "nothing"))
        for what in [*recorded, *(each for each in again if each not in recorded)]
        if recorded.get(what) != again.get(what)
    ]


def _own(run: Run, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts of the run itself, without attempts on its alternates after it."""
    if not run.destinations:
        return list(attempts)
    last = {each.instance: each.selected.ordinal for each in run.destinations}
    return [each for each in attempts if each.ordinal <= last.get(each.instance, each.ordinal)]


def alternates_used(run: Run, attempts: Sequence[Attempt]) -> int:
    """Return the number of attempts on alternates after the run; records name no version for these."""
    return len(attempts) - len(_own(run, attempts))


def _parts_of(run: Run, outcome: Outcome) -> dict[str, str]:
    again = msgspec.structs.replace(
        run,
        steps=outcome.steps,
        refusal=outcome.refusal,
        destinations=numbered(outcome, _generations(run)),
        # Records of earlier program versions have no weights.
        weighed=weighed_in(outcome) if run.weighed else (),
    )
    return _parts(again, attempts_of(run.id, run.request_id, run.finished_at, outcome))


def _generations(run: Run) -> dict[str, int] | None:
    """Return the generations of replaced claims after a run; None for a record of an earlier program version
    or of a rebuild."""
    if any(each.selected.generation is None for each in run.destinations):
        return None
    return {instance: before + 1 for instance, before in run.generations.items()}


def _parts(run: Run, attempts: Sequence[Attempt]) -> dict[str, str]:
    parts = {"steps": _text(run.steps), "refusal": _text(run.refusal)}
    if run.weighed:
        parts["weights"] = _text(run.weighed)
    for each in run.destinations:
        parts[f"destination of {each.instance}"] = _text((each.selected, each.alternates))
    for attempt in sorted(attempts, key=lambda each: (each.instance, each.ordinal)):
        # The end of a build is no part of the decision.
        ended = (REFUSED, attempt.reason) if attempt.result == REFUSED else ("claimed", None)
        agreed = [getattr(attempt, name) for name in _AGREED]
        parts[f"attempt {attempt.ordinal} of {attempt.instance}"] = _text((*agreed, *ended))
    return parts


def _text(value: object) -> str:
    return _encode(value).decode()
