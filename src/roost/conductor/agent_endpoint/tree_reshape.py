"""Reshapes of trees, as a cell's endpoint makes them for agents: see `roost.state.cell_database.reshapes`."""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection

from roost.agent.protocol.errors import AgentProtocolError, EndpointUnavailable
from roost.agent.protocol.questions import Reshape
from roost.agent.protocol.types import (
    ProviderRefusal,
    ProviderState,
    Reshaped,
    SessionKey,
    SetAggregates,
    TreeClaim,
)
from roost.conductor.agent_endpoint.endpoint_context import EndpointContext
from roost.conductor.agent_endpoint.sessions import SessionGone, counters_of, refusal_of
from roost.model.allocation import UNKNOWN_TYPE
from roost.model.inventory import Inventory
from roost.model.reshape import why_not
from roost.model.text import error_text
from roost.scheduler.selection.running_selection import INSTANCE
from roost.state.cell_database.consumers import consumers_of_instances, renamed
from roost.state.cell_database.reshapes import (
    Claimed,
    ReshapeBegun,
    ReshapeMark,
    begin_reshape,
    follow_claims,
    read_reshape_marks,
)
from roost.storage import StorageError, Transaction, transaction

LOOK_SECONDS = 5.0
"""Seconds between two looks for reshapes that were cut off."""

CUT_OFF_SECONDS = 30.0
"""Seconds after which a reshape counts as cut off. One that goes on nevertheless is refused, and repeated."""

MOST_TOLD = 1000
"""Characters of the inventories before and after a reshape in the log, each."""

ATTEMPTS = 3
"""Reads of a root until a reshape is settled: the second one sees what the first one has written."""

NAMED = 5
"""Consumers that a refusal names at most."""


@transaction
def begin_reshape_of_session(
    connection: Connection, session: SessionKey, begin: Transaction[ReshapeBegun]
) -> ReshapeBegun | SessionGone:
    """Begin a reshape, if the agent holds the session: see `begin_reshape`."""
    if counters_of(connection, [session], lock=True) == [None]:
        return SessionGone()
    return begin(connection)


async def reshape(
    context: EndpointContext, database: str, question: Reshape, tree: Mapping[str, ProviderState]
) -> Reshaped:
    """Make a reshape, or refuse it with nothing changed. ``tree``: the providers of the tree by uuid.

    Raises `AgentProtocolError`, `StorageError`. Then placement may have made the reshape: the mark stays.
    """
    claims: dict[str, TreeClaim] = await context.providers.claims(question.root)
    names = await context.read(database, consumers_of_instances(tuple(question.claims)))
    question = msgspec.structs.replace(question, claims=renamed(question.claims, names))
    refusal = _judge(question, tree, claims)
    if refusal is not None:
        return Reshaped(refusal)
    mark = ReshapeMark(question.root, tree[question.root].generation, context.clock())
    generations = {uuid: claims[uuid].generation for uuid in question.claims if _is_instance(claims[uuid])}
    begin = begin_reshape_of_session(question.session, begin_reshape(mark, generations))
    begun: ReshapeBegun | SessionGone = await context.write(database, begin)
    if isinstance(begun, SessionGone):
        raise refusal_of(question.session)
    if begun.marked:
        # Another message of the session has begun it since the tree was read.
        return Reshaped(ProviderRefusal("another reshape of the tree is under way", conflict=True))
    if begun.exchanging:
        return Reshaped(ProviderRefusal("a move is about to exchange claims of the node", conflict=True))
    if begun.behind:
        return await _refuse_behind(context, database, question, tree, claims, begun.behind)
    refused = await context.providers.reshape(question.root, question.inventories, question.claims)
    moved = {} if refused is not None else _moved(question)
    providers = {each.uuid: each.name for each in tree.values()}
    at = context.clock()
    ended: list[str] = await context.write(
        database, follow_claims(question.root, providers, moved, at, ends=mark)
    )
    if refused is None:
        after = {each.uuid: each.inventories for each in question.inventories}
        changed = [uuid for uuid in after if after[uuid] != tree[uuid].inventories]
        values = {
            "host": question.session.host,
            "node": question.root,
            "before": _told({providers[uuid]: tree[uuid].inventories for uuid in changed}),
            "after": _told({providers[uuid]: after[uuid] for uuid in changed}),
            "consumers": len(moved),
            "instances": len(ended),
        }
        context.log("a node is reshaped", values)
    return Reshaped(refused, len(ended))


async def settle_cut_off(context: EndpointContext, database: str, cell: str) -> None:
    """Settle reshapes that were cut off, for ever."""
    failing = False
    while True:
        await context.sleep(LOOK_SECONDS)
        try:
            before = context.clock() - CUT_OFF_SECONDS
            for mark in await context.read(database, read_reshape_marks(before)):
                await settle(context, database, mark)
            failing = False
        except (StorageError, AgentProtocolError) as error:
            if not failing:
                values = {"cell": cell, "error": error_text(error)}
                context.log("reshapes that were cut off cannot be settled", values, "warning")
            failing = True


async def settle(context: EndpointContext, database: str, mark: ReshapeMark) -> None:
    """Update the rows of a tree's instances to placement after a reshape that was cut off.

    Raises `AgentProtocolError`, `StorageError`: then it is tried again.
    """
    for _ in range(ATTEMPTS):
        tree = await context.providers.read(mark.root)
        root = next((each for each in tree if each.uuid == mark.root), None)
        if root is None or root.generation != mark.generation:
            break
        # The reshape is not made yet. From here on it cannot be, though its message may still be under way.
        write = SetAggregates(mark.root, root.aggregates, mark.generation)
        await context.providers.write(mark.root, (write,))
    else:
        raise EndpointUnavailable(f"the root {mark.root} cannot be written: its reshape cannot be settled")
    claims = {} if root is None else await context.providers.claims(mark.root)
    held = {uuid: Claimed(each.allocations, each.generation) for uuid, each in claims.items()}
    names = {each.uuid: each.name for each in tree}
    at = context.clock()
    changed = await context.write(database, follow_claims(mark.root, names, held, at, ends=mark))
    values = {"node": mark.root, "instances": len(changed)}
    context.log("a reshape that was cut off is settled", values, "warning")


def _told(inventories: Mapping[str, Mapping[str, Inventory]]) -> str:
    """Return the inventories of providers by name, as text for the log."""
    told = (
        f"{name}: " + (", ".join(f"{each.total} {of}" for of, each in inventory.items()) or "nothing")
        for name, inventory in sorted(inventories.items())
    )
    return "; ".join(told)[:MOST_TOLD]


def _judge(
    question: Reshape, tree: Mapping[str, ProviderState], claims: Mapping[str, TreeClaim]
) -> ProviderRefusal | None:
    """Return why a reshape is refused before it is tried, None if it is not."""
    generations = {each.uuid: each.generation for each in question.inventories}
    if question.root not in generations:
        return ProviderRefusal("a reshape without the inventories of the root cannot be made")
    for uuid, generation in generations.items():
        if uuid not in tree or tree[uuid].generation != generation:
            return ProviderRefusal(f"provider {uuid} has changed since it was read", conflict=True)
    for uuid, moved in question.claims.items():
        held = claims.get(uuid)
        if held is None or held.generation != moved.generation:
            return ProviderRefusal(
                f"the claim of consumer {uuid} has changed since it was read", conflict=True
            )
        reason = why_not(held.allocations, moved.allocations, tree)
        if reason is not None:
            return ProviderRefusal(f"the claim of {_kind(held)} {uuid} does not add up: {reason}")
    return None


async def _refuse_behind(
    context: EndpointContext,
    database: str,
    question: Reshape,
    tree: Mapping[str, ProviderState],
    claims: Mapping[str, TreeClaim],
    behind: tuple[str, ...],
) -> Reshaped:
    """Update rows that are behind their claims, and refuse the reshape if some cannot be updated."""
    held = {uuid: Claimed(claims[uuid].allocations, claims[uuid].generation) for uuid in behind}
    names = {each.uuid: each.name for each in tree.values()}
    at = context.clock()
    changed = await context.write(database, follow_claims(question.root, names, held, at))
    left = [uuid for uuid in behind if uuid not in changed]
    if not left:
        return Reshaped(ProviderRefusal("rows of instances followed their claims first", conflict=True))
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return Reshaped(
        ProviderRefusal(
            f"instances {', '.join(left[:NAMED])}{more} hold something of the node, but the cell has none of "
            "them on it: they are on their way, or their claims are left over"
        )
    )


def _moved(question: Reshape) -> dict[str, Claimed]:
    """Return the claims of consumers after a reshape: each write raises the generation by one."""
    return {uuid: Claimed(each.allocations, each.generation + 1) for uuid, each in question.claims.items()}


def _is_instance(claim: TreeClaim) -> bool:
    # A placement service before microversion 1.38 tells no types.
    return claim.consumer_type in (INSTANCE, UNKNOWN_TYPE, None)


def _kind(claim: TreeClaim) -> str:
    return "instance" if claim.consumer_type == INSTANCE else f"consumer ({claim.consumer_type or 'no type'})"
