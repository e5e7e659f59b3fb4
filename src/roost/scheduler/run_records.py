"""Records of runs and attempts, made from outcomes of the selection."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from roost.model.reasons import WeighedHost
from roost.model.record import ABANDONED, PENDING, REFUSED, Asked, Attempt
from roost.model.spec import Destination, Selection
from roost.scheduler.request.query import PlacementQueries
from roost.scheduler.selection.outcome import ClaimAttempt, Outcome
from roost.scheduler.selection.replacement import Replacement


def asked_of(queries: PlacementQueries, node_version: int | None) -> Asked:
    """Return the queries of a run as its record has them."""
    return Asked(queries.query, queries.fallbacks, queries.limit, node_version)


def attempts_of(run: str, request_id: str, at: float, outcome: Outcome) -> list[Attempt]:
    """Return the attempts of a run; ordinals count those of one instance from 1.

    Claims of a run that placed nothing were given back.
    """
    ordinals: Counter[str] = Counter()
    found = []
    kept = {destination.instance for destination in outcome.destinations}
    for tried in outcome.tries:
        ordinals[tried.instance] += 1
        ordinal = ordinals[tried.instance]
        if tried.refusal is not None:
            result, reason = REFUSED, tried.refusal
        elif tried.instance in kept:
            result, reason = PENDING, None
        else:
            result, reason = ABANDONED, f"the claim was given back: {outcome.refusal}"
        found.append(_attempt(run, request_id, at, tried, ordinal, result, reason))
    return found


def numbered(outcome: Outcome, generations: Mapping[str, int] | None) -> tuple[Destination, ...]:
    """Return the destinations of a run, with the ordinals of the attempts that claimed them.

    ``generations``: the present ones of consumers whose claims were replaced; the others are new. None: the
    run claimed nothing.
    """
    tries = Counter(tried.instance for tried in outcome.tries)
    return tuple(
        msgspec.structs.replace(
            each,
            selected=msgspec.structs.replace(
                each.selected,
                ordinal=tries[each.instance],
                generation=None if generations is None else generations.get(each.instance, 1),
            ),
        )
        for each in outcome.destinations
    )


def weighed_in(outcome: Outcome) -> tuple[WeighedHost, ...]:
    """Return the numbers behind the weights of a run's first destination, as its record has them."""
    if not outcome.destinations:
        return ()
    first = outcome.destinations[0]
    return tuple(
        WeighedHost(selected.host, selected.weight, numbers())
        for selected, numbers in zip((first.selected, *first.alternates), outcome.weighed, strict=False)
    )


def attempts_after(
    run: str, request_id: str, at: float, failed: Selection, found: Replacement
) -> list[Attempt]:
    """Return the attempts to claim alternates after a failure.

    A claimed alternate has its own ordinal, which counts the alternates before it: a repeated call does not
    judge these again.
    """
    tries, last = found.tries, failed.ordinal + len(found.tries)
    if found.selected is not None:
        last = found.selected.ordinal
    return [
        _attempt(
            run,
            request_id,
            at,
            tried,
            last - len(tries) + place,
            PENDING if tried.refusal is None else REFUSED,
            tried.refusal,
        )
        for place, tried in enumerate(tries, 1)
    ]


def _attempt(
    run: str, request_id: str, at: float, tried: ClaimAttempt, ordinal: int, result: str, reason: str | None
) -> Attempt:
    return Attempt(
        run=run,
        request_id=request_id,
        instance=tried.instance,
        ordinal=ordinal,
        at=at,
        host=tried.host,
        cell=tried.cell,
        weight=tried.weight,
        result=result,
        reason=reason,
        node=tried.node,
        version=tried.version,
        finished_at=None if result == PENDING else at,
    )
