"""The claims that nobody answered for: the proof of each, from facts that were read. Pure, without I/O."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from roost.ledger import Held
from roost.model.allocation import Allocations
from roost.nova.database.actions import ERROR, EVACUATE, UNSHELVE, NovaAction
from roost.nova.database.cells import CELL0
from roost.nova.database.evacuations import EvacuationRow
from roost.nova.database.migrations import MigrationRow
from roost.nova.database.states import ACCEPTED, EVACUATION, OFFLOADED
from roost.nova.database.traces import RowTrace
from roost.state.api_database.audit import AuditFinding

BURIED: Final = "buried-claim"
"""An instance in cell0 holds a claim: its conductor gave up, and put it where no host is."""

FORGOTTEN: Final = "forgotten-claim"
"""An instance that a run of this scheduler claimed for has no trace in Nova."""

BESIDE: Final = "evacuation-claim"
"""An instance holds of a host that it should have been evacuated to, and no evacuation goes on."""

SHELVED: Final = "unshelve-claim"
"""An instance that is shelved and on no host holds a claim: its last unshelve failed before a host had it."""

FREE_CLAIM: Final = "free-claim"
"""Write what the instance holds without the unanswered part."""

SLACK: Final = datetime.timedelta(minutes=1)
"""Most that an action's start may be before the creation of its evacuation."""

CONDUCTOR_STEP: Final = "rebuild_server"
"""The event of an evacuation's step in Nova's conductor, which ends before a compute service gets it."""

UNSHELVE_STEP: Final = "schedule_instances"
"""The same of an unshelve."""


class ClaimSuspect(NamedTuple):
    """An instance that may hold a claim that nobody answered for.

    ``claimed``: the allocations that a recorded run claimed; None: no record says. ``run``: its id.
    """

    instance: str
    claimed: Allocations | None = None
    run: str | None = None


class InstanceTraces(msgspec.Struct, frozen=True, kw_only=True):
    """All that Nova's databases have of an instance.

    ``requested``: it has a build request. ``mapped``: the uuid of the cell that it is mapped to. ``rows``: by
    the uuid of the cell, also rows of deleted instances. ``migrations``: those that have not ended.
    ``evacuations``: all of them. ``actions``: those of users.
    """

    requested: bool = False
    mapped: str | None = None
    rows: Mapping[str, RowTrace] = {}
    migrations: Sequence[MigrationRow] = ()
    evacuations: Sequence[EvacuationRow] = ()
    actions: Sequence[NovaAction] = ()

    @property
    def row(self) -> RowTrace | None:
        """The row of the instance if it is in one cell, and not deleted."""
        if len(self.rows) != 1 or CELL0 in self.rows:
            return None
        [row] = self.rows.values()
        return None if row.deleted else row


def kind_of(traces: InstanceTraces) -> str | None:
    """Return the kind of the claim that nobody would have answered for; None if Nova explains any claim."""
    if traces.requested:
        return None
    row = traces.row
    if row is not None and row.host is not None:
        return BESIDE if _is_given_up(traces) else None
    if row is not None:
        return SHELVED if _is_still_shelved(row, traces) else None
    if traces.mapped not in (None, CELL0) or traces.rows.keys() - {CELL0} or traces.migrations:
        return None
    return BURIED if traces.rows or traces.mapped else FORGOTTEN


def _is_given_up(traces: InstanceTraces) -> bool:
    """Return whether an evacuation of the instance has failed before a host took it, and nothing goes on.

    A conductor that gets no answer leaves its evacuation accepted for ever. Its step of the action has ended
    with an error then, and no compute service will hear of it.
    """
    if not any(each.untaken for each in traces.evacuations):
        return False
    if any(each.kind != EVACUATION or each.status != ACCEPTED for each in traces.migrations):
        return False
    waiting = [each for each in traces.evacuations if each.status == ACCEPTED]
    if not waiting:
        return not traces.migrations
    if not all(each.untaken for each in waiting):
        return False
    begun = min((each.created for each in waiting if each.created is not None), default=None)
    if begun is None:
        return False
    actions = [
        each
        for each in traces.actions
        if each.name == EVACUATE and (each.started is None or each.started >= begun - SLACK)
    ]
    return bool(actions) and all(_ended_at(CONDUCTOR_STEP, each) for each in actions)


def _is_still_shelved(row: RowTrace, traces: InstanceTraces) -> bool:
    """Return whether the last unshelve of an instance has failed before a host took it."""
    if row.state != OFFLOADED or row.task is not None or traces.migrations:
        return False
    return fails_to_unshelve(traces.actions)


def fails_to_unshelve(actions: Sequence[NovaAction]) -> bool:
    """Return whether the last unshelve among the actions on an instance has failed in the conductor."""
    last = next((each for each in reversed(actions) if each.name == UNSHELVE), None)
    return last is not None and _ended_at(UNSHELVE_STEP, last)


def _ended_at(step: str, action: NovaAction) -> bool:
    """Return whether an action has ended with an error at a step of the conductor."""
    return any(each.name == step and each.result == ERROR for each in action.events)


def unanswered(
    suspect: ClaimSuspect, traces: InstanceTraces, held: Held, hosts: Mapping[str, str | None]
) -> AuditFinding | None:
    """Return the finding of a claim that nobody answered for; None if what is held is explained.

    ``hosts``: the host of each provider that is held of, None for one that is in no host's tree.
    """
    kind = kind_of(traces)
    kept: Allocations | None = {}
    if kind is None or (kind == FORGOTTEN and held.allocations != suspect.claimed):
        return None
    if kind == BESIDE:
        others = {host for host in hosts.values() if host is not None} - _sources(traces)
        if not others:
            return None
        kept = _kept(suspect.claimed, traces, held.allocations, hosts, others)
    return AuditFinding(
        kind=kind,
        subject=suspect.instance,
        detail=_DETAIL[kind],
        expected=_EXPECTED[kind],
        proof=_proof(suspect, traces, held, kept),
        action=None if kept is None else FREE_CLAIM,
        waits_for="an operator: it cannot be told which part of a shared provider is held for the new host"
        if kept is None
        else None,
    )


def _sources(traces: InstanceTraces) -> set[str]:
    """Return the hosts that an instance may hold of: its own, and those that it was evacuated from."""
    row = traces.row
    own = {row.host} if row is not None and row.host is not None else set()
    return own | {each.source_host for each in traces.evacuations if each.source_host is not None}


def _kept(
    claimed: Allocations | None,
    traces: InstanceTraces,
    held: Allocations,
    hosts: Mapping[str, str | None],
    others: set[str],
) -> Allocations | None:
    """Return what an instance keeps whose evacuation was given up; None if that is unsure."""
    if len(others) > 1:
        return None
    if claimed is not None:
        kept = _without(held, claimed)
        if kept is not None and not others & {hosts.get(each) for each in kept}:
            return kept
    if any(host is None for host in hosts.values()):
        return None
    return {provider: amounts for provider, amounts in held.items() if hosts[provider] not in others}


def _without(held: Allocations, claimed: Allocations) -> Allocations | None:
    """Return what is held less what was claimed; None if less is held."""
    left = {provider: dict(amounts) for provider, amounts in held.items()}
    for provider, amounts in claimed.items():
        for name, amount in amounts.items():
            if left.get(provider, {}).get(name, 0) < amount:
                return None
            left[provider][name] -= amount
    positive = {
        provider: {name: amount for name, amount in amounts.items() if amount}
        for provider, amounts in left.items()
    }
    return {provider: amounts for provider, amounts in positive.items() if amounts}


def _proof(
    suspect: ClaimSuspect, traces: InstanceTraces, held: Held, kept: Allocations | None
) -> dict[str, Any]:
    """Return the facts that two rounds must have read alike, as JSON data."""
    return {
        "generation": held.consumer.generation,
        "allocations": held.allocations,
        "kept": kept,
        "run": suspect.run,
        "claimed": suspect.claimed,
        "mapped": traces.mapped,
        "rows": {cell: [row.host, row.deleted] for cell, row in sorted(traces.rows.items())},
    }


def suspect_of(finding: AuditFinding) -> ClaimSuspect:
    """Return the suspect of a finding, for the next round."""
    return ClaimSuspect(finding.subject, finding.proof.get("claimed"), finding.proof.get("run"))


_DETAIL: Final = {
    BURIED: "the instance is in cell0 or its boot was given up, and it holds a claim",
    FORGOTTEN: "no database of Nova has the instance, and it holds what a run claimed for it",
    SHELVED: "the instance is shelved and on no host, and holds what an unshelve has claimed",
    BESIDE: "the instance holds of a second host, and no evacuation of it goes on",
}
_EXPECTED: Final = {
    BURIED: "nothing is claimed for it",
    FORGOTTEN: "nothing is claimed for it",
    SHELVED: "nothing is claimed for it",
    BESIDE: "it holds of its own host alone",
}
