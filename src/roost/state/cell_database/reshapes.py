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
from roost.model.instance import RESHAPED
from roost.model.move_states import UNDOING
from roost.model.reshape import followed
from roost.model.spec import Selection
from roost.state.cell_database.history import MOST_OF_GUESTS, NEW_LINE, line, with_line
from roost.state.cell_database.rows import of_consumers, selection_of, selection_text
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances, moves, nodes, reshapes
from roost.storage import in_batches, transaction


class ReshapeMark(msgspec.Struct, frozen=True):
    """The mark of a tree whose reshape may be in placement.

    ``generation``: of the root before the reshape. ``at``: its begin, in seconds since the epoch.
    """

    root: str
    generation: int
    at: float


class ReshapeBegun(msgspec.Struct, frozen=True):
    """The answer to `begin_reshape`. No mark is stored if one of the three is set.

    ``marked``: an earlier reshape of the tree must be settled first. ``behind``: instances whose rows differ
    from their claims. ``exchanging``: instances whose claims a move on the host is about to exchange, which
    is seen by their generations alone.
    """

    marked: bool = False
    behind: tuple[str, ...] = ()
    exchanging: tuple[str, ...] = ()

    @property
    def may_go_on(self) -> bool:
        """True if the mark of the new reshape is stored."""
        return not self.marked and not self.behind and not self.exchanging


@transaction
def begin_reshape(connection: Connection, mark: ReshapeMark, generations: Mapping[str, int]) -> ReshapeBegun:
    """Store the mark of a reshape. ``generations``: of instances' claims, by consumer, as they were read."""
    if connection.execute(_MARKED, {"of_root": mark.root}).first() is not None:
        return ReshapeBegun(marked=True)
    there = {
        row.consumer or row.uuid: row for some in in_batches(generations) for row in _rows(connection, some)
    }
    if exchanging := connection.execute(_EXCHANGING, {"of_root": mark.root}).scalars().all():
        return ReshapeBegun(exchanging=tuple(exchanging))
    behind = []
    for uuid, generation in generations.items():
        row = there.get(uuid)
        if row is None or row.node != mark.root:
            behind.append(uuid)
            continue
        selection = selection_of(row)
        # Rows of earlier versions have no selection, or one without a generation.
        if selection is not None and selection.generation not in (None, generation):
            behind.append(uuid)
    if behind:
        return ReshapeBegun(behind=tuple(behind))
    connection.execute(sa.insert(reshapes), msgspec.structs.asdict(mark))
    return ReshapeBegun()


@transaction
def read_settled_claim(connection: Connection, instance: str, root: str) -> Selection | None:
    """Return the claim of an instance as its row has it; None while a reshape of the tree is under way.

    None too if the instance is gone. What changes the claim later is no reshape that was under way before.
    """
    if find_reshape_mark(root)(connection) is not None:
        return None
    query = sa.select(instances.c.uuid, instances.c.selection).where(instances.c.uuid == instance)
    rows: list[sa.Row[tuple[object, ...]]] = [*connection.execute(query)]
    return selection_of(rows[0]) if rows else None


class Claimed(msgspec.Struct, frozen=True):
    """The allocations and the generation of a consumer in placement."""

    allocations: Allocations
    generation: int


@transaction
def follow_claims(
    connection: Connection,
    root: str,
    tree: Mapping[str, str],
    claims: Mapping[str, Claimed],
    at: float,
    ends: ReshapeMark | None = None,
) -> list[str]:
    """Update the rows of instances on a node to their claims. Returns the consumers whose rows changed.

    ``root``: the node. ``tree``: its providers, uuid -> name. ``claims``: by consumer.
    ``at``: seconds since the epoch, for histories.
    ``ends``: the mark that is removed.
    """
    changed, consumers = [], []
    for some in in_batches(sorted(claims)):
        for row in _rows(connection, some):
            consumer = row.consumer or row.uuid
            claimed, selection = claims[consumer], selection_of(row)
            if row.node != root or selection is None:
                continue
            if not _is_behind(selection, claimed):
                continue
            known = {*tree, *selection.allocations}
            if claimed.allocations.keys() <= known:
                new = followed(selection, claimed.allocations, claimed.generation)
                holds = allocations_text(new.allocations, tree)
                told = line(RESHAPED, at, f"holds {holds}") if _moves(selection, new) else ""
                changed.append({"key": row.uuid, "new": selection_text(new), "line": told})
                consumers.append(consumer)
    if changed:
        connection.execute(_FOLLOW, changed)
    for each in changed:
        if each["line"]:
            note_changes(connection, [each["key"]], each["line"])
    if ends is not None:
        ended = reshapes.c.root == ends.root, reshapes.c.generation == ends.generation
        connection.execute(sa.delete(reshapes).where(*ended))
    return consumers


def _moves(before: Selection, after: Selection) -> bool:
    return before.allocations != after.allocations


def _is_behind(selection: Selection, claimed: Claimed) -> bool:
    if selection.generation is None:
        return True
    if selection.allocations == claimed.allocations:
        # A claim that was freed and made again begins at generation 1.
        return selection.generation != claimed.generation
    return selection.generation < claimed.generation


@transaction
def find_reshape_mark(connection: Connection, root: str) -> ReshapeMark | None:
    """Return the mark of a tree, None if no reshape of it is under way."""
    row = connection.execute(sa.select(reshapes).where(reshapes.c.root == root)).one_or_none()
    return None if row is None else ReshapeMark(**row._asdict())


@transaction
def read_reshape_marks(connection: Connection, before: float = float("inf")) -> list[ReshapeMark]:
    """Return the marks of reshapes that began before ``before`` (seconds since the epoch)."""
    query = sa.select(reshapes).order_by(reshapes.c.at)
    marks = [ReshapeMark(**row._asdict()) for row in connection.execute(query)]
    return [mark for mark in marks if mark.at < before]


_MARKED = sa.select(reshapes.c.root).where(reshapes.c.root == sa.bindparam("of_root")).with_for_update()
_EXCHANGING = (
    sa.select(moves.c.instance_uuid)
    .join(nodes, nodes.c.host == moves.c.source_host)
    .where(
        nodes.c.node == sa.bindparam("of_root"),
        moves.c.state == UNDOING,
        moves.c.target_host == moves.c.source_host,
    )
    .order_by(moves.c.instance_uuid)
)
_ROWS = (
    sa.select(instances.c.uuid, instances.c.node, instances.c.selection, instances.c.consumer)
    .where(of_consumers("uuids"))
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
