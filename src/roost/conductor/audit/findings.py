"""The observed differences of instances, and the repair of each: pure, without I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
from roost.ledger import Held
from roost.model.allocation import Allocations
from roost.model.instance import IN_PLACE, LOST, Instance
from roost.model.move import Move
from roost.state.api_database.audit import AuditFinding
from roost.state.api_database.mappings import ANYWHERE, InstanceMapping
from roost.state.cell_database.guests import UnknownGuest

UNKNOWN_GUEST = "unknown-guest"
"""A host has a guest that no cell wants there."""

FREE_CLAIM = "free-claim"
"""Write that the consumer holds nothing."""
CLAIM_AGAIN = "claim-again"
"""Write the claim again with which the instance was built."""
DESTROY_GUEST = "destroy-guest"
"""Order the host to destroy the guest."""
MAP_AGAIN = "map-again"
"""Write the mapping to the one cell that has the instance."""
FOLLOW_GUEST = "follow-guest"
"""Put the instance on the host that has its guest and its claim."""
END_INSTANCE = "end-instance"
"""Delete the instance from its cell, as its user has."""

DRY_RUN = -1
"""In place of the number of permitted repairs: the round makes no repair, not even few."""

EXPECTED: Mapping[str, str] = {
    LEAKED_CLAIM: "nothing is claimed for it",
    MISSING_CLAIM: "what it was built with is claimed on its node",
    WRONG_HOST: "what it was built with is claimed on its node, and on no other",
    WRONG_CELL: "its mapping names its cell",
    UNMAPPED_INSTANCE: "it has a mapping to its cell",
    MISSING_INSTANCE: "its cell has it, or it has no mapping",
    TWO_CELLS: "one cell has it",
    UNKNOWN_GUEST: "its host has no guest of it, or its cell knows of it",
}
"""The state that should be, in words, by the kind of the finding."""


class ClaimedNode(NamedTuple):
    """The node whose tree has all that a consumer holds, its host and its cell."""

    node: str
    host: str
    cell: str


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that one look saw, with all that was read of its instance.

    ``nodes``: the root providers of the hosts concerned. ``rows``: by cell. ``is_past``: it was an instance
    of these conductors, and its end is known. ``guests``: by cell, guests on hosts that the cell does not
    know. ``move``: the move, if it is one and no instance. ``is_whole``: all cells could be read.
    ``unfilled``: the providers that it was built on and that placement does not have. ``claimed_on``: None if
    it holds nothing, or from several nodes, or from one that is in no cell.
    """

    kind: str
    instance: str
    detail: str
    held: Held | None
    mapping: InstanceMapping | None
    rows: Mapping[str, Instance]
    nodes: tuple[str, ...]
    is_past: bool
    guests: Mapping[str, Sequence[UnknownGuest]] = {}
    move: Move | None = None
    is_whole: bool = True
    unfilled: tuple[str, ...] = ()
    claimed_on: ClaimedNode | None = None

    @property
    def is_own(self) -> bool:
        """True if these conductors made the instance: another program may have made claims of its type."""
        return bool(self.is_past or self.mapping or self.rows or self.move)

    @property
    def proof(self) -> dict[str, Any]:
        """The facts that were read, with the generations and epochs that any change of them raises."""
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
                    **({} if row.move is None else {"move": row.move}),
                }
                for cell, row in sorted(self.rows.items())
            },
            "is_past": self.is_past,
            **({"guests": dict(self.guests)} if self.guests else {}),
            **({} if self.move is None else {"move": self.move.state}),
        }

    @property
    def present(self) -> Instance | None:
        """The instance, if its guest is in place, one cell has it and is mapped, and its row has a claim.

        None while it moves: then its row need not say what it holds.
        """
        if len(self.rows) != 1 or self.mapping is None or self.mapping.deleted:
            return None
        [(cell, row)] = self.rows.items()
        is_known = row.selection is not None and row.selection.node == row.node
        is_settled = row.state in IN_PLACE and row.move is None
        return row if self.mapping.cell == cell and is_settled and is_known else None

    @property
    def is_unclaimed(self) -> bool:
        """True if the instance runs and never had a claim, as its row says.

        It was placed while hosts came from the cells' databases, or by an earlier version.
        """
        if self.kind != MISSING_CLAIM or self.present is None:
            return False
        built = self.present.selection
        return built is not None and built.generation is None

    @property
    def action(self) -> str | None:
        """The repair; None if none is certain, so that an operator has to look."""
        if self.kind == LEAKED_CLAIM and self._has_no_guest:
            return FREE_CLAIM
        # A guest of which the cell has not heard may be the right one, where the claim is.
        if self.kind in (MISSING_CLAIM, WRONG_HOST) and self.present is not None and not self.guests:
            return CLAIM_AGAIN
        if self.kind == UNMAPPED_INSTANCE and self._is_deleted:
            return END_INSTANCE
        if self.kind in (UNMAPPED_INSTANCE, WRONG_CELL) and self._is_in_one_cell:
            return MAP_AGAIN
        if self.kind == UNKNOWN_GUEST and all(self._is_over(cell, each) for cell, each in self.strays):
            return DESTROY_GUEST
        if self.kind == UNKNOWN_GUEST and self.followed is not None:
            return FOLLOW_GUEST
        return None

    @property
    def _has_no_guest(self) -> bool:
        """True if no guest of the instance runs: it has ended, or was never in a cell.

        A cell that has lost the row of an instance that nobody deleted proves nothing: its guest may run on.
        """
        if self.guests:
            return False
        at = self.mapping
        is_promised = at is not None and (at.cell is not None or at.epoch == ANYWHERE) and not at.deleted
        return not is_promised or bool(self.rows)

    @property
    def _is_in_one_cell(self) -> bool:
        """True if one cell has the instance, no other can, and its user has not deleted it.

        A mapping is removed after the row in the cell, so a row without a mapping means that the mapping was
        lost. A mapping to another cell is wrong only if the claim in placement is that of the row.
        """
        if len(self.rows) != 1 or self.is_past or not self.is_whole:
            return False
        [row] = self.rows.values()
        if self.mapping is None:
            return True
        is_claimed = (
            self.held is not None
            and row.selection is not None
            and self.held.allocations == row.selection.allocations
        )
        return row.state in IN_PLACE and is_claimed and not self.mapping.deleted

    @property
    def _is_deleted(self) -> bool:
        """True if the one cell that has the instance was taken back to before its deletion.

        Its mapping is removed after its row, so what is past and has a row again has no mapping.
        """
        return self.is_past and self.is_whole and self.mapping is None and len(self.rows) == 1

    @property
    def followed(self) -> UnknownGuest | None:
        """The guest that the row of a lost instance follows: its cell was taken back to before a move.

        It is the only unknown one, of an attempt that the cell has not made yet, and its host has what the
        instance holds, which is as much as it was built with. None if that is not so, or if what serves
        which request group cannot be known.
        """
        if self.mapping is None or self.mapping.deleted or len(self.rows) != 1 or len(self.strays) != 1:
            return None
        [(cell, row)] = self.rows.items()
        [(of, guest)] = self.strays
        built, place = row.selection, self.claimed_on
        if built is None or place is None or self.held is None or row.state != LOST or row.move is not None:
            return None
        is_there = of == cell == self.mapping.cell == place.cell and guest.host == place.host
        is_plain = built.mappings.keys() <= {""} and built.assignment is None
        is_same = amounts_of(self.held.allocations) == amounts_of(built.allocations)
        return guest if is_there and is_plain and is_same and guest.attempt > row.attempt else None

    @property
    def strays(self) -> list[tuple[str, UnknownGuest]]:
        """The unknown guests, each with its cell."""
        return [(cell, each) for cell, guests in sorted(self.guests.items()) for each in guests]

    def _is_over(self, cell: str, guest: UnknownGuest) -> bool:
        """Return whether the attempt of a guest is known to be over.

        The instance was deleted, or its cell has assigned it again since. A cell that was restored from a
        backup knows fewer attempts, never more.
        """
        row = self.rows.get(cell)
        return row.attempt > guest.attempt if row is not None else self.is_past and not self.rows

    def same_as(self, other: "Observed") -> bool:
        """Return whether another look saw the same, and nothing has changed in between."""
        return self.kind == other.kind and self.instance == other.instance and self.proof == other.proof


def amounts_of(allocations: Allocations) -> Counter[str]:
    """Return the amounts of allocations by resource class, of all providers."""
    amounts: Counter[str] = Counter()
    for held in allocations.values():
        amounts.update(held)
    return amounts


class NodeSign(msgspec.Struct, frozen=True):
    """The host of a node: its cell, the stamp of its session, and why its agent carries out no orders."""

    host: str
    cell: str
    stamp: tuple[object, ...] | None
    held: str | None


def judged(observed: Observed, before: Mapping[str, NodeSign], after: Mapping[str, NodeSign]) -> AuditFinding:
    """Return the finding of a difference, with its repair.

    ``before`` and ``after``: the nodes' hosts at the two looks.
    """
    action = observed.action
    if not observed.is_own:
        waits: str | None = "no conductor knows of such an instance: another program may have claimed it"
    elif action is None or action == MAP_AGAIN:
        # A mapping says nothing of guests.
        waits = None
    elif action == CLAIM_AGAIN and observed.unfilled:
        waits = f"placement is being filled: it has no provider {', '.join(observed.unfilled)} yet"
    else:
        waits = missing_report(observed.nodes, before, after)
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
    """Return why some host of the nodes is not known to report; None if all report.

    A host reports if the stamp of its session has changed between the two looks: it has polled, so its cell
    has heard of its guests.
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
    """Return the number of repairs that a round makes: all, if they are few or an operator permits them.

    ``most``: repairs of a round without an operator's permission. ``permitted``: the number that an operator
    permits, or `DRY_RUN`.
    """
    if permitted == DRY_RUN:
        return 0
    return repairable if repairable <= most else min(permitted, repairable)
