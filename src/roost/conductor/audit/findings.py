"""What is observed of an instance, and what is to be done about it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from roost.conductor.comparison import (
    LEAKED_CLAIM,
    MISSING_CLAIM,
    MISSING_INSTANCE,
    TWO_CELLS,
    UNMAPPED_INSTANCE,
    WRONG_CELL,
    WRONG_HOST,
)
from roost.conductor.mappings import InstanceMapping
from roost.ledger import Held
from roost.model.instance import Instance

FREE_CLAIM = "free-claim"
"""Write that the consumer holds nothing."""

EXPECTED: Mapping[str, str] = {
    LEAKED_CLAIM: "nothing is claimed for it",
    MISSING_CLAIM: "what it was built with is claimed on its node",
    WRONG_HOST: "what it was built with is claimed on its node, and on no other",
    WRONG_CELL: "its mapping names its cell",
    UNMAPPED_INSTANCE: "it has a mapping to its cell",
    MISSING_INSTANCE: "its cell has it, or it has no mapping",
    TWO_CELLS: "one cell has it",
}
"""What should be, by the kind of the finding."""

ACTIONS: Mapping[str, str] = {LEAKED_CLAIM: FREE_CLAIM}
"""The repairs, by the kind of the finding. All other findings are told of and left to an operator."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that one look saw, with all that was read of its instance.

    ``nodes``: the root providers of the hosts concerned. ``rows``: by cell. ``is_past``: it was an instance
    of these conductors, and its end is known.
    """

    kind: str
    instance: str
    detail: str
    held: Held | None
    mapping: InstanceMapping | None
    rows: Mapping[str, Instance]
    nodes: tuple[str, ...]
    is_past: bool

    @property
    def is_own(self) -> bool:
        """Whether these conductors made it: claims of the same type may be those of another program."""
        return bool(self.is_past or self.mapping or self.rows)

    @property
    def proof(self) -> dict[str, Any]:
        """What was read, with the generations and numbers that any change of it raises."""
        held, at = self.held, self.mapping
        return {
            "claim": held and {"generation": held.consumer.generation, "allocations": held.allocations},
            "mapping": at and {"cell": at.cell, "epoch": at.epoch, "deleted": at.deleted},
            "rows": {
                cell: {
                    "state": row.state,
                    "host": row.host,
                    "node": row.node,
                    "attempt": row.attempt,
                    "epoch": row.epoch,
                    "owner_epoch": row.owner_epoch,
                }
                for cell, row in sorted(self.rows.items())
            },
            "is_past": self.is_past,
        }

    def same_as(self, other: "Observed") -> bool:
        """Whether another look saw the same, and nothing has changed in between."""
        return self.kind == other.kind and self.instance == other.instance and self.proof == other.proof


class NodeSign(msgspec.Struct, frozen=True):
    """The host of a node: its cell, the stamp of its session, and why its agent carries out no orders."""

    host: str
    cell: str
    stamp: tuple[object, ...] | None
    held: str | None


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that both looks of a round saw.

    ``subject`` is the instance. ``detail`` says what is there, ``expected`` what should be, ``proof`` what
    was read, both times. ``action`` is the repair, None if there is none that is certain; ``waits_for`` says
    what keeps it from being made.
    """

    kind: str
    subject: str
    detail: str
    expected: str
    proof: dict[str, Any]
    action: str | None
    waits_for: str | None


def judged(observed: Observed, before: Mapping[str, NodeSign], after: Mapping[str, NodeSign]) -> AuditFinding:
    """What is to be done about a difference. ``before`` and ``after``: the nodes' hosts at the two looks."""
    action = ACTIONS.get(observed.kind)
    if not observed.is_own:
        waits: str | None = "no conductor knows of such an instance: another program may have claimed it"
    else:
        waits = None if action is None else missing_report(observed.nodes, before, after)
    return AuditFinding(
        kind=observed.kind,
        subject=observed.instance,
        detail=observed.detail,
        expected=EXPECTED[observed.kind],
        proof=observed.proof,
        action=action,
        waits_for=waits,
    )


def missing_report(
    nodes: Sequence[str], before: Mapping[str, NodeSign], after: Mapping[str, NodeSign]
) -> str | None:
    """Why not all hosts of some nodes are known to report; None if they are.

    A host reports if the stamp of its session has changed between the two looks: it has polled, so that its
    cell has heard of its guests.
    """
    if not nodes:
        return "no host is known that could report"
    for node in nodes:
        sign = after.get(node)
        if sign is None:
            return f"provider {node} is no node of a cell that could be read: no host reports for it"
        if sign.held is not None:
            return f"the agent of host {sign.host} in cell {sign.cell} waits for an operator: {sign.held}"
        earlier = before.get(node)
        if sign.stamp is None or earlier is None or earlier.stamp == sign.stamp:
            return f"host {sign.host} in cell {sign.cell} shows no sign of life"
    return None


def allowed(repairable: int, most: int, permitted: int) -> int:
    """How many of a round's repairs are made: all, if they are few or an operator permits them.

    ``most``: repairs of a round without an operator. ``permitted``: those that an operator permits.
    """
    return repairable if repairable <= most else min(permitted, repairable)
