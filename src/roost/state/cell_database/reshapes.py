"""Reshapes of provider trees: the rows of instances are updated to their claims in placement.

Placement has the claim of an instance, and the instance's row in the cell a copy of it: allocations, mappings
and the consumer's generation. A reshape changes the claims of all instances of a node in one write. Then
their rows are outdated until the second write, to another database, and between the two the process may be
killed.

So a mark is stored first: the root of the tree, and the generation of the root at which placement is to make
the reshape. It is removed with the write of the rows. A mark that stays is settled by any endpoint of the
cell, and whenever an agent asks for the tree: the endpoint raises the root's generation if that is still the
mark's, so that a write which is under way fails. From then on the claims in placement are final, and the rows
are updated to them.

A row is updated to a claim if the claim is on its node, and newer. So a row never goes back to an older
claim, nor to that of a conductor that swaps the claim to another host.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.allocation import Allocations, allocations_text
from roost.model.history import RESHAPED
from roost.model.reshape import followed
from roost.model.spec import Selection
from roost.state.cell_database.cell_work import CellWork
from roost.state.cell_database.history import MOST_OF_GUESTS, NEW_LINE, line, with_line
from roost.state.cell_database.rows import selection_of, selection_text
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances, reshapes
from roost.storage import in_batches, one_of


class ReshapeMark(msgspec.Struct, frozen=True):
    """The mark of a tree whose reshape may be in placement.

    ``generation``: of the root before the reshape. ``at``: its begin, in seconds since the epoch.
    """

    root: str
    generation: int
    at: float


class ReshapeBegun(msgspec.Struct, frozen=True):
    """The answer to `BeginReshape`. No mark is stored if one of the two is set.

    ``marked``: an earlier reshape of the tree must be settled first. ``behind``: instances whose rows differ
    from their claims.
    """

    marked: bool = False
    behind: tuple[str, ...] = ()

    @property
    def may_go_on(self) -> bool:
        """True if the mark of the new reshape is stored."""
        return not self.marked and not self.behind


class BeginReshape(msgspec.Struct, frozen=True):
    """Store the mark of a reshape. ``generations``: those of the instances' claims, as they were read."""

    mark: ReshapeMark
    generations: Mapping[str, int]

    def __call__(self, connection: Connection) -> ReshapeBegun:
        if connection.execute(_MARKED, {"of_root": self.mark.root}).first() is not None:
            return ReshapeBegun(marked=True)
        there = {row.uuid: row for some in in_batches(self.generations) for row in _rows(connection, some)}
        behind = []
        for uuid, generation in self.generations.items():
            row = there.get(uuid)
            if row is None or row.node != self.mark.root:
                behind.append(uuid)
                continue
            selection = selection_of(row)
            # Rows of earlier versions have no selection, or one without a generation.
            if selection is not None and selection.generation not in (None, generation):
                behind.append(uuid)
        if behind:
            return ReshapeBegun(behind=tuple(behind))
        connection.execute(sa.insert(reshapes), msgspec.structs.asdict(self.mark))
        return ReshapeBegun()


class Claimed(msgspec.Struct, frozen=True):
    """The allocations and the generation of a consumer in placement."""

    allocations: Allocations
    generation: int


class FollowClaims(CellWork, frozen=True):
    """Update the rows of instances on a node to their claims. Answers the instances whose rows changed.

    ``root``: the node. ``tree``: its providers, uuid -> name. ``at``: seconds since the epoch, for histories.
    ``ends``: the mark that is removed.
    """

    root: str
    tree: Mapping[str, str]
    claims: Mapping[str, Claimed]
    at: float
    ends: ReshapeMark | None = None

    def __call__(self, connection: Connection) -> list[str]:
        changed = []
        for some in in_batches(sorted(self.claims)):
            for row in _rows(connection, some):
                claimed, selection = self.claims[row.uuid], selection_of(row)
                if row.node != self.root or selection is None:
                    continue
                if not _is_behind(selection, claimed):
                    continue
                known = {*self.tree, *selection.allocations}
                if claimed.allocations.keys() <= known:
                    new = followed(selection, claimed.allocations, claimed.generation)
                    holds = allocations_text(new.allocations, self.tree)
                    told = line(RESHAPED, self.at, f"holds {holds}") if _moves(selection, new) else ""
                    changed.append({"key": row.uuid, "new": selection_text(new), "line": told})
        if changed:
            connection.execute(_FOLLOW, changed)
        for each in changed:
            if each["line"]:
                note_changes(connection, [each["key"]], each["line"])
        if self.ends is not None:
            ended = reshapes.c.root == self.ends.root, reshapes.c.generation == self.ends.generation
            connection.execute(sa.delete(reshapes).where(*ended))
        return [each["key"] for each in changed]


def _moves(before: Selection, after: Selection) -> bool:
    return before.allocations != after.allocations


def _is_behind(selection: Selection, claimed: Claimed) -> bool:
    if selection.generation is None:
        return True
    if selection.allocations == claimed.allocations:
        # A claim that was freed and made again begins at generation 1.
        return selection.generation != claimed.generation
    return selection.generation < claimed.generation


class FindReshapeMark(msgspec.Struct, frozen=True):
    """Answers the mark of a tree, None if no reshape of it is under way."""

    root: str

    def __call__(self, connection: Connection) -> ReshapeMark | None:
        row = connection.execute(sa.select(reshapes).where(reshapes.c.root == self.root)).one_or_none()
        return None if row is None else ReshapeMark(**row._asdict())


class ReadReshapeMarks(msgspec.Struct, frozen=True):
    """Answers the marks of reshapes that began before ``before`` (seconds since the epoch)."""

    before: float = float("inf")

    def __call__(self, connection: Connection) -> list[ReshapeMark]:
        query = sa.select(reshapes).order_by(reshapes.c.at)
        marks = [ReshapeMark(**row._asdict()) for row in connection.execute(query)]
        return [mark for mark in marks if mark.at < self.before]


_MARKED = sa.select(reshapes.c.root).where(reshapes.c.root == sa.bindparam("of_root")).with_for_update()
_ROWS = (
    sa.select(instances.c.uuid, instances.c.node, instances.c.selection)
    .where(one_of(instances.c.uuid, "uuids"))
    .order_by(instances.c.uuid)
    .with_for_update()
)
_FOLLOW = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"))
    .values(selection=sa.bindparam("new"), history=with_line(NEW_LINE, MOST_OF_GUESTS))
)


def _rows(connection: Connection, uuids: Collection[str]) -> list[sa.Row[tuple[object, ...]]]:
    return [*connection.execute(_ROWS, {"uuids": uuids})]
