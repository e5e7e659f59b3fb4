"""A summary of comparisons: the share of agreement, and the differences by their cause."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from roost.nova.shadow.comparison import AGREEMENT, Comparison

MOST_EXAMPLES: Final = 3
"""Newest comparisons that are named with a cause."""


class Difference(msgspec.Struct, frozen=True):
    """The comparisons with one outcome and one cause. ``examples``: the newest of them."""

    outcome: str
    cause: str
    number: int
    late: int
    examples: tuple[Comparison, ...]


class ShadowSummary(msgspec.Struct, frozen=True):
    """A summary of the comparisons of a time.

    ``instances``: the number of compared instances, without those of which Roost came to no decision.
    ``agreement``: the share of them on which both agree, from 0 to 1; None without any. ``outcomes``: their
    numbers. ``late``: instances whose claim was there before Roost's decision. ``median_seconds``: of Roost's
    decisions, from the arrival of a call.
    """

    instances: int
    agreement: float | None
    outcomes: dict[str, int]
    late: int
    median_seconds: float | None
    differences: tuple[Difference, ...]


def summary_of(found: Sequence[Comparison]) -> ShadowSummary:
    """Return the summary of comparisons, which are in the order of their times."""
    outcomes = Counter(each.outcome for each in found)
    judged = [each for each in found if each.outcome != "failed"]
    agreed = sum(each.outcome in AGREEMENT for each in judged)
    by_cause: defaultdict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for each in found:
        if each.outcome not in AGREEMENT:
            by_cause[each.outcome, each.cause].append(each)
    differences = [
        Difference(
            outcome,
            cause,
            len(of),
            sum(each.late for each in of),
            tuple(reversed(of[-MOST_EXAMPLES:])),
        )
        for (outcome, cause), of in by_cause.items()
    ]
    seconds = sorted(each.seconds for each in judged)
    return ShadowSummary(
        instances=len(judged),
        agreement=agreed / len(judged) if judged else None,
        outcomes=dict(outcomes.most_common()),
        late=sum(each.late for each in found),
        median_seconds=seconds[len(seconds) // 2] if seconds else None,
        differences=tuple(sorted(differences, key=lambda each: -each.number)),
    )
