"""CPUs and PCI devices of a node that several consumers have to themselves."""

from roost.ledger.audit_snapshot import Assignments
from roost.ledger.findings import ASSIGNED_TWICE, Finding
from roost.model.assignment import Assigned, clashes


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
