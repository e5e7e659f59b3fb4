"""The answers to agents' questions about the provider trees of their nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from roost.agent.protocol.errors import AccessRefused
from roost.agent.protocol.questions import ReadClaims, ReadTree, Reshape, WriteProviders
from roost.agent.protocol.types import (
    CreateProvider,
    MoveProvider,
    ProviderRefusal,
    ProviderState,
    ProviderWrite,
    SessionKey,
    TreeClaim,
    Written,
)
from roost.conductor.agent_endpoint.endpoint_context import EndpointContext
from roost.conductor.agent_endpoint.sessions import SessionGone, refusal_of
from roost.conductor.agent_endpoint.transactions import reaches_root
from roost.conductor.agent_endpoint.tree_reshape import reshape, settle
from roost.state.cell_database.consumers import instances_of_consumers, renamed
from roost.state.cell_database.hosts import hosts_called, note_providers
from roost.state.cell_database.reshapes import ReshapeMark, find_reshape_mark
from roost.storage import transaction


async def answer_of_tree(
    context: EndpointContext, database: str, question: ReadTree | ReadClaims | WriteProviders | Reshape
) -> Any:
    """Answer a question about a tree, if the tree is a node of the session's host.

    Raises `AgentProtocolError`, `StorageError`.
    """
    session, root = question.session, question.root
    tree = await _read_tree(context, database, session, root)
    match question:
        case ReadTree(sharing=wanted):
            serving = frozenset().union(*(each.aggregates for each in tree))
            return (*tree, *await context.providers.sharing(serving, wanted))
        case ReadClaims():
            return await _claims_by_instance(context, database, root) if tree else {}
        case Reshape():
            return await reshape(context, database, question, {each.uuid: each for each in tree})
    if not tree:
        await _check_new_root(context, database, session, root, question.writes)
    given = {each.name for each in question.writes if isinstance(each, CreateProvider | MoveProvider)}
    if names := tuple(sorted(given - {session.host})):
        for name in await context.read(database, hosts_called(names)):
            return Written(
                0, ProviderRefusal(f"a provider cannot have the name {name}: it is another host's")
            )
    made = tuple(
        each.uuid
        for each in question.writes
        if isinstance(each, CreateProvider) and (each.parent is not None or each.uuid == root)
    )
    if made:
        # Noted before they are made, so that none is left when the host is removed. Sharing providers stay.
        await context.write(database, note_providers(root, made))
    return await context.providers.write(root, question.writes)


async def _claims_by_instance(context: EndpointContext, database: str, root: str) -> Mapping[str, TreeClaim]:
    """Return the claims in a tree by the names that an agent knows."""
    claims: Mapping[str, TreeClaim] = await context.providers.claims(root)
    return renamed(claims, await context.read(database, instances_of_consumers(tuple(claims))))


@transaction
def find_tree(
    connection: Connection, session: SessionKey, root: str
) -> tuple[bool | SessionGone | None, ReshapeMark | None]:
    """Read the answer of `reaches_root`, and the mark of a reshape of the tree that may be under way."""
    reaches = reaches_root(session, root)(connection)
    return reaches, None if reaches is False else find_reshape_mark(root)(connection)


async def _read_tree(
    context: EndpointContext, database: str, session: SessionKey, root: str
) -> tuple[ProviderState, ...]:
    """Return the tree of a node, if the session's host may reach it.

    A reshape that an earlier agent has asked for is settled first, so that the tree is not older than it.
    """
    reaches, mark = await context.read(database, find_tree(session, root))
    if isinstance(reaches, SessionGone):
        raise refusal_of(session)
    if mark is not None:
        await settle(context, database, mark)
    tree: tuple[ProviderState, ...] = ()
    if reaches is not False:
        tree = await context.providers.read(root)
        # A node that was never reported must be the host's own, which has its name.
        reaches = reaches or all(each.name == session.host for each in tree if each.uuid == root)
    if not reaches:
        raise AccessRefused(f"provider {root} is no node of host {session.host}")
    return tree


async def _check_new_root(
    context: EndpointContext, database: str, session: SessionKey, root: str, writes: Sequence[ProviderWrite]
) -> None:
    """Raise `AccessRefused` if a root would get a name that the host may not give."""
    names = [each.name for each in writes if isinstance(each, CreateProvider) and each.uuid == root]
    if any(name != session.host for name in names):
        reaches = await context.read(database, reaches_root(session, root))
        if reaches is not True:
            raise AccessRefused(
                f"provider {root} is no node that host {session.host} has reported: "
                f"it cannot be made as {names[0]!r}"
            )
