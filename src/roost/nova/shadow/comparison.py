"""A decision beside Nova's: agreement, or the difference with its reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from roost.model.spec import Destination
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.host_pool import OFFERED
from roost.scheduler.pool.judged_pool import PoolJudgement

ComparedOutcome = Literal[
    "same", "tie", "other", "refused_by_roost", "refused_by_nova", "both_refused", "failed"
]
"""Outcomes of a comparison.

``same``: the same host. ``tie``: another host of the same weight, or one of the best that the options let
both draw from. ``other``: another host. ``refused_by_roost``: Nova's scheduler claimed a host, Roost found
none.
``refused_by_nova``: Roost found a host, Nova's scheduler claimed none. ``both_refused``: neither found one.
``failed``: Roost came to no decision.
"""

AGREEMENT = ("same", "tie", "both_refused")
"""The outcomes that are agreement."""

WEIGHT_TOLERANCE = 1e-9
"""Difference up to which two weights are equal: the order of summation differs."""

UNKNOWN_NODE = "unknown node"
NO_CLAIM = "no claim"
WEIGHT = "weight"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Roost's decision on one instance beside Nova's.

    ``run``: of Roost's scheduler, as the records have it. ``at``: seconds since the epoch when the call came.
    ``seconds``: from then until the decision. ``late``: Nova's claim was in placement before the decision, so
    that it counted in the weights. ``cause``: in a word: a filter, a weigher or a step. ``reason``: in a
    sentence; both are empty where the two agree.
    """

    run: str
    instance: str
    at: float
    request_id: str | None = None
    project: str | None = None
    flavor: str | None = None
    outcome: ComparedOutcome
    late: bool = False
    cause: str = ""
    reason: str = ""
    roost_host: str | None = None
    nova_host: str | None = None
    roost_weight: float | None = None
    nova_weight: float | None = None
    seconds: float = 0.0


class RoostDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Roost's decision on a call: destinations, or the reason of its refusal.

    ``cause``: of a refusal, the step that left no host. ``judgement``: the verdicts on all hosts; None if no
    hosts were judged. ``drawn_from``: the number of best hosts that the options let a run draw from.
    """

    run: str
    destinations: tuple[Destination, ...] = ()
    cause: str = ""
    reason: str = ""
    failed: bool = False
    judgement: PoolJudgement | None = None
    drawn_from: int = 1


def compared(
    call: Comparison,
    instances: Sequence[str],
    decision: RoostDecision,
    claimed: Mapping[str, str],
    table: NodeTable,
) -> list[Comparison]:
    """Return the comparison of each instance of a call.

    Instances of a call are equal, so that a host which both give to different instances is the same host.

    Args:
        call: has the fields that are equal for all instances.
        claimed: the node, as its root provider's uuid, that Nova's scheduler claimed for each instance.
    """
    ours = {each.instance: each.selected for each in decision.destinations}
    both = Counter(each.node for each in ours.values()) & Counter(claimed.values())
    left = Counter(claimed.values()) - both
    others = iter(left.elements())
    found: list[Comparison] = []
    for instance in instances:
        selected = ours.get(instance)
        if selected is None:
            node = claimed.get(instance)
            if ours:
                node = next(others, None)
        elif both[selected.node]:
            both[selected.node] -= 1
            node = selected.node
        else:
            node = next(others, None)
        one = msgspec.structs.replace(
            call,
            instance=instance,
            nova_host=None if node is None else _name(table, node),
            roost_host=None if selected is None else selected.host,
            roost_weight=None if selected is None else selected.weight,
        )
        found.append(_judged(one, decision, None if selected is None else selected.node, node, table))
    return found


def _judged(
    one: Comparison, decision: RoostDecision, ours: str | None, theirs: str | None, table: NodeTable
) -> Comparison:
    """Return the comparison with outcome, cause and reason. ``ours``, ``theirs``: the two nodes."""
    replace = msgspec.structs.replace
    if decision.failed:
        return replace(one, outcome="failed", cause=decision.cause, reason=decision.reason)
    if ours is None and theirs is None:
        return replace(one, outcome="both_refused")
    if theirs is None:
        reason = "Nova's scheduler claimed nothing in time: it refused the call, or the claim is gone again"
        return replace(one, outcome="refused_by_nova", cause=NO_CLAIM, reason=reason)
    if ours == theirs:
        return replace(one, outcome="same", nova_weight=one.roost_weight)
    index = table.index_of_node(theirs)
    judgement = decision.judgement
    verdict = None if judgement is None else judgement.verdict(index)
    if verdict is None or verdict.step is not None:
        cause, reason = _removed(one, decision, None if verdict is None else verdict.step, index)
        return replace(
            one, outcome="refused_by_roost" if ours is None else "other", cause=cause, reason=reason
        )
    assert judgement is not None and verdict.weight is not None and index is not None
    one = replace(one, nova_weight=verdict.weight)
    if ours is None:
        return replace(one, outcome="refused_by_roost", cause=decision.cause, reason=decision.reason)
    own = table.index_of_node(ours)
    best = None if own is None else judgement.verdict(own).weight
    if own is None or best is None:
        return replace(one, outcome="other", cause=UNKNOWN_NODE, reason="Roost's host is gone meanwhile")
    if abs(best - verdict.weight) <= WEIGHT_TOLERANCE or (verdict.rank or 0) < decision.drawn_from:
        return replace(one, outcome="tie")
    differences = judgement.differences(own, index)
    named = sorted(differences.items(), key=lambda each: -abs(each[1]))
    cause = next((name for name, by in named if by * (best - verdict.weight) > 0), WEIGHT)
    parts = ", ".join(f"{name} {by:+.4g}" for name, by in named if abs(by) > WEIGHT_TOLERANCE)
    reason = f"{one.roost_host} weighs {best:.4g}, {one.nova_host} {verdict.weight:.4g}: {parts}"
    return replace(one, outcome="other", cause=cause, reason=reason)


def _removed(
    one: Comparison, decision: RoostDecision, step: str | None, index: int | None
) -> tuple[str, str]:
    """Return cause and reason where Roost has not weighed the host that Nova's scheduler claimed."""
    if index is None:
        return UNKNOWN_NODE, f"Roost knows no node {one.nova_host}"
    if step is None:
        return decision.cause, decision.reason
    if step == OFFERED:
        return step, f"placement offered Roost no candidate on {one.nova_host}"
    return step, f"{step} leaves out {one.nova_host}"


def _name(table: NodeTable, node: str) -> str:
    index = table.index_of_node(node)
    return node if index is None else table.hosts[index]
