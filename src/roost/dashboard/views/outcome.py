"""The outcome of a decision, in a word: of its record, as far as the viewer sees it."""

from typing import Literal

import msgspec

from roost.model.record import ABANDONED, BUILT, FAILED, PENDING
from roost.records import RunWithAttempts

DecisionOutcome = Literal[
    "built", "building", "partly", "refused", "failed", "abandoned", "chosen", "decided"
]
"""``partly``: fewer instances were placed than were asked for. ``chosen``: hosts were chosen and not claimed.
``decided``: the record does not tell more."""


class RecordedHost(msgspec.Struct, frozen=True):
    """A host in a record: its name, and the uuid of its root provider, None where the record has none."""

    name: str
    node: str | None


def outcome_of(record: RunWithAttempts) -> DecisionOutcome:
    """Return the outcome of a decision."""
    run = record.run
    ends = {each.result for each in record.attempts}
    placed = {each.instance for each in record.attempts if each.result in (PENDING, BUILT)}
    if run.refusal is not None and not placed:
        return "refused"
    if placed:
        if len(placed) < len(run.instances):
            return "partly"
        return "building" if PENDING in ends else "built"
    if FAILED in ends:
        return "failed"
    if ABANDONED in ends:
        return "abandoned"
    return "chosen" if run.destinations else "decided"


def hosts_of(record: RunWithAttempts) -> tuple[RecordedHost, ...]:
    """Return the hosts where a decision's instances are or were to be, each once; none that is not seen."""
    there = [each for each in record.attempts if each.result in (PENDING, BUILT)]
    found = {each.host: each.node or None for each in there if each.host}
    if not there:
        found = {each.selected.host: each.selected.node for each in record.run.destinations}
    return tuple(RecordedHost(name, node) for name, node in found.items())
