"""Verification: compares commits, tables and a loaded fleet.

    audit_snapshot  the tables as plain facts; rows that make no sense
    breaches        allocations that their inventories do not allow
    history         the commits, undone to the oldest one and applied again

The code is independent of the writer's projection. It shares `roost.ledger.load` and the fleet, which are
verified too, the decoder of commits, and the rule whether an amount fits (`roost.fleet.fits`).
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.fleet.errors import FleetError
from roost.ledger.audit_snapshot import AuditSnapshot, read_audit_snapshot
from roost.ledger.breaches import Breaches
from roost.ledger.errors import Damaged
from roost.ledger.facts import (
    FLEET_KINDS,
    Assignments,
    assigned_in,
    differences,
    facts_of,
    members_in,
    used_in,
)
from roost.ledger.findings import (
    ASSIGNED_TWICE,
    ASSIGNMENT_UNREADABLE,
    BROKEN_REFERENCE,
    FLEET_DIFFERS,
    OUT_OF_RANGE,
    PARENT_LOOP,
    USE_DIFFERS,
    Finding,
)
from roost.ledger.history import Progress, no_progress, replay
from roost.ledger.load import load
from roost.ledger.tables import allocations, resource_classes, resource_providers
from roost.model.assignment import Assigned, clashes

_UNLOADABLE = (BROKEN_REFERENCE, OUT_OF_RANGE, PARENT_LOOP, ASSIGNMENT_UNREADABLE)


def verify(connection: Connection, progress: Progress = no_progress) -> list[Finding]:
    """Return a finding for each difference in the ledger's tables. Nothing is written.

    ``progress`` is called with the number of commits that are verified, and with their total.

    The connection's transaction must see one snapshot, as those of `Database.read` do.
    """
    snapshot, findings = read_audit_snapshot(connection)
    breaches = Breaches(snapshot)
    fleet = None
    # No fleet can be loaded with these, which are findings already.
    if not any(finding.kind in _UNLOADABLE for finding in findings):
        fleet, differing = _load(connection, snapshot)
        findings += differing
    findings += _check_use(connection, snapshot)
    findings += replay(connection, snapshot, fleet, breaches, progress)
    return findings + breaches.findings() + assigned_twice(snapshot.assigned)


def _load(connection: Connection, snapshot: AuditSnapshot) -> tuple[Fleet | None, list[Finding]]:
    """Load a fleet, and compare it with the tables; None if it cannot be loaded or differs."""
    try:
        fleet = load(connection)
    except (FleetError, Damaged) as error:
        return None, [Finding(FLEET_DIFFERS, "fleet", f"cannot be loaded: {error}")]
    findings = _differences(fleet, snapshot)
    return (None if findings else fleet), findings


def _differences(fleet: Fleet, snapshot: AuditSnapshot) -> list[Finding]:
    """Return the differences between a loaded fleet and the tables."""
    findings = [
        Finding(FLEET_DIFFERS, f"{kind} {thing}", f"a loaded fleet has {theirs}, the tables {ours}")
        for kind, thing, ours, theirs in differences(snapshot.facts, facts_of(fleet), FLEET_KINDS)
    ]
    used = used_in(fleet)
    for key in sorted(snapshot.used.keys() | used.keys()):
        if snapshot.used[key] != used.get(key, 0):
            findings.append(
                Finding(
                    USE_DIFFERS,
                    f"{key[1]} of resource provider {key[0]}",
                    f"{snapshot.used[key]} allocated, a loaded fleet has {used.get(key, 0)} in use",
                )
            )
    members = members_in(fleet)
    for group, consumer in sorted(snapshot.members.keys() | members.keys()):
        ours, theirs = (side.get((group, consumer), ()) for side in (snapshot.members, members))
        if ours != theirs:
            findings.append(
                Finding(
                    FLEET_DIFFERS,
                    f"member {consumer} of server group {group}",
                    f"a loaded fleet has it on {theirs}, the tables on {ours}",
                )
            )
    assigned = assigned_in(fleet)
    for node in sorted(snapshot.assigned.keys() | assigned.keys()):
        stored, loaded = (side.get(node, {}) for side in (snapshot.assigned, assigned))
        if stored != loaded:
            findings.append(
                Finding(
                    FLEET_DIFFERS,
                    f"assignments on node {node}",
                    f"a loaded fleet has {loaded}, the tables {stored}",
                )
            )
    return findings


def _check_use(connection: Connection, snapshot: AuditSnapshot) -> list[Finding]:
    """Compare our sums of allocations with the database's."""
    total = (
        sa.select(resource_providers.c.uuid, resource_classes.c.name, sa.func.sum(allocations.c.used))
        .select_from(
            allocations.join(resource_providers, resource_providers.c.id == allocations.c.provider_id).join(
                resource_classes, resource_classes.c.id == allocations.c.resource_class_id
            )
        )
        .group_by(resource_providers.c.uuid, resource_classes.c.name)
    )
    summed = {(uuid, name): int(amount) for uuid, name, amount in connection.execute(total)}
    return [
        Finding(
            USE_DIFFERS,
            f"{name} of resource provider {uuid}",
            f"{snapshot.used[uuid, name]} counted, the database's sum is {summed.get((uuid, name), 0)}",
        )
        for uuid, name in sorted(snapshot.used.keys() | summed.keys())
        if snapshot.used[uuid, name] != summed.get((uuid, name), 0)
    ]


def assigned_twice(assigned: Assignments) -> list[Finding]:
    """Return a finding for each pair of consumers with the same part of a node's hardware."""
    return [finding for node in sorted(assigned) for finding in _on(node, assigned[node])]


def _on(node: str, assigned: Assigned) -> list[Finding]:
    findings = []
    for consumer in sorted(assigned):
        others = {name: each for name, each in assigned.items() if name < consumer}
        for other, parts in clashes(assigned[consumer], others).items():
            detail = f"consumers {other} and {consumer} both have {parts}"
            findings.append(Finding(ASSIGNED_TWICE, f"node {node}", detail))
    return findings
