"""The funnel of a decision: from all hosts to the chosen one, with the hosts that each step removed."""

import msgspec

from roost.model.reasons import HostNames, Reasons, StageKind
from roost.model.record import Run
from roost.scheduler.pool.host_pool import KNOWN, OFFERED

CHOSEN = "chosen"
"""The name of the last step: the hosts that instances were placed on."""


class FunnelStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a decision, after which ``left`` hosts remain.

    ``text``: the hosts that it leaves, in words that follow a plural subject; empty if the record has none.
    ``kind``: of the step; None for the hosts that are known, and for the chosen ones. ``removed``: by this
    step. ``alone``: the hosts that do not meet it, also those that an earlier step has removed; None if this
    was not found out. ``sole``: the hosts that no other step removes. ``hosts``: the names of the removed
    ones.
    """

    name: str
    text: str = ""
    kind: StageKind | None = None
    left: int
    removed: int = 0
    alone: int | None = None
    sole: int | None = None
    hosts: HostNames = HostNames()


def funnel_of(run: Run) -> tuple[FunnelStep, ...]:
    """Return the funnel of a run: the stages of its reasons, which are finer, else its steps."""
    if run.reasons is not None and run.reasons.stages:
        return _of_reasons(run.reasons)
    steps: list[FunnelStep] = []
    before = 0
    for number, step in enumerate(run.steps):
        kind: StageKind | None = "query" if step.name == OFFERED else "filter" if number else None
        removed = max(0, before - step.left) if number else 0
        steps.append(FunnelStep(name=step.name, kind=kind, left=step.left, removed=removed))
        before = step.left
    chosen = len({each.selected.node for each in run.destinations})
    if chosen and steps:
        steps.append(FunnelStep(name=CHOSEN, left=chosen, removed=max(0, before - chosen)))
    return tuple(steps)


def _of_reasons(reasons: Reasons) -> tuple[FunnelStep, ...]:
    left = reasons.hosts
    steps = [FunnelStep(name=KNOWN, left=left)]
    for stage in reasons.stages:
        left -= stage.hosts
        steps.append(
            FunnelStep(
                name=stage.name,
                text=stage.text,
                kind=stage.kind,
                left=left,
                removed=stage.hosts,
                alone=stage.hosts_alone,
                sole=stage.hosts_sole,
                hosts=stage.removed,
            )
        )
    return tuple(steps)
