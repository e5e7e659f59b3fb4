"""Reshapes a node's tree: inventories change and claims move in one write.

New providers are created first, without inventories, so that nothing is claimed of them yet. Then placement
changes all inventories and claims at once, or nothing. The rest, traits of old providers and deletions, is an
ordinary report. An agent that is killed in between begins again: its driver finds the old tree, or the new
one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from roost.agent.agent_context import AgentContext
from roost.agent.driver_calls import ConsumerRecords
from roost.agent.errors import ReshapeRefused
from roost.agent.protocol.questions import ReadClaims, Reshape
from roost.agent.protocol.types import (
    CreateProvider,
    DeleteProvider,
    MovedClaim,
    MoveProvider,
    ProviderState,
    Reshaped,
    SessionKey,
    SetInventories,
    TreeClaim,
)
from roost.agent.provider_merge import NOTHING, Applied, Plan, PlannedWrite
from roost.agent.provider_tree import ProviderTree
from roost.model.reshape import counted_class


class Moved(NamedTuple):
    """A tree as a driver has reshaped it, and the claims that it moved."""

    tree: ProviderTree
    claims: dict[str, MovedClaim]


async def move_claims(
    context: AgentContext, session: SessionKey, node: str, root: str, tree: ProviderTree
) -> Moved:
    """Have the driver change a tree and move the claims on it. ``tree``: the tree as placement has it.

    Raises `ReshapeRefused`, and what ``cell`` and the driver raise.
    """
    claims: dict[str, TreeClaim] = await context.cell.ask(ReadClaims(session, root))
    records = {consumer: _record(each) for consumer, each in claims.items()}
    tree, records = await context.driver.reshape_tree(tree, node, records)
    if records.keys() != claims.keys():
        odd = sorted(records.keys() ^ claims.keys())
        raise ReshapeRefused(f"the driver has added or left out consumer {odd[0]}")
    moved = {}
    for consumer, claim in claims.items():
        allocations = _allocations(consumer, records)
        if allocations != claim.allocations:
            moved[consumer] = MovedClaim(allocations, claim.generation)
    return Moved(tree, moved)


def with_moved_classes(applied: Applied, wanted: ProviderTree, there: Sequence[ProviderState]) -> Applied:
    """Return the applied providers, with the classes that a driver moves elsewhere as the agent's own.

    Another agent, such as Nova's before an upgrade, may have made their inventories. If they stayed, the host
    would have its amounts twice.
    """
    inventories = {each.uuid: each.inventory for each in wanted.desired() if each.inventory is not None}
    anywhere = {counted_class(name) for inventory in inventories.values() for name in inventory}
    after = dict(applied)
    for state in there:
        if (now := inventories.get(state.uuid)) is None:
            continue
        moved = {name for name in state.inventories.keys() - now if counted_class(name) in anywhere}
        if moved:
            before = after.get(state.uuid, NOTHING)
            after[state.uuid] = msgspec.structs.replace(before, classes=before.classes | moved)
    return after


def before_reshape(planned: Plan) -> list[PlannedWrite]:
    """Return the writes that precede a reshape: new providers with traits and aggregates, and moves."""
    created = {each.provider for each in planned.writes if isinstance(each.write, CreateProvider)}
    return [
        each
        for each in planned.writes
        if isinstance(each.write, CreateProvider | MoveProvider)
        or (each.provider in created and each.write is not None and "inventories" not in each.changes)
    ]


class PlannedReshape(NamedTuple):
    """The inventories that a reshape changes, and by provider the changes to its `AppliedProvider`."""

    inventories: tuple[SetInventories, ...]
    changes: dict[str, Mapping[str, Any]]


def plan_reshape(planned: Plan, there: Sequence[ProviderState], root: str) -> PlannedReshape:
    """Plan the final inventories of all providers; empty for those that go. The root is always included."""
    states = {state.uuid: state for state in there}
    writes: dict[str, SetInventories] = {}
    changes: dict[str, Mapping[str, Any]] = {}
    for each in planned.writes:
        if isinstance(each.write, SetInventories):
            writes[each.provider] = each.write
        if "inventories" in each.changes:
            changes[each.provider] = each.changes
        if isinstance(each.write, DeleteProvider) and states[each.provider].inventories:
            writes[each.provider] = SetInventories(each.provider, {}, states[each.provider].generation)
    if root not in writes:
        writes[root] = SetInventories(root, states[root].inventories, states[root].generation)
    return PlannedReshape(tuple(writes.values()), changes)


def changes_anything(planned: PlannedReshape, there: Sequence[ProviderState]) -> bool:
    """Return whether any inventory would differ from the present one."""
    states = {state.uuid: state.inventories for state in there}
    return any(each.inventories != states[each.uuid] for each in planned.inventories)


async def reshape(
    context: AgentContext,
    session: SessionKey,
    node: str,
    root: str,
    planned: PlannedReshape,
    claims: dict[str, MovedClaim],
    applied: Applied,
    ahead: Applied,
) -> Applied | None:
    """Make a reshape. Returns the applied providers then; None if others have changed the tree meanwhile.

    ``ahead``: all that may be the agent's own while the reshape is under way. Raises `ReshapeRefused`.
    """
    await context.state.keep_applied(node, ahead)
    question = Reshape(session, root, planned.inventories, claims)
    done: Reshaped = await context.cell.ask(question)
    if done.refusal is not None:
        await context.state.keep_applied(node, applied)
        if done.refusal.conflict:
            return None
        raise ReshapeRefused(done.refusal.text)
    now = dict(applied)
    for provider, changes in planned.changes.items():
        PlannedWrite(provider, None, changes).take(now)
    await context.state.keep_applied(node, now)
    return now


def _record(claim: TreeClaim) -> dict[str, Any]:
    return {
        "allocations": {uuid: {"resources": dict(each)} for uuid, each in claim.allocations.items()},
        "project_id": claim.project_id,
        "user_id": claim.user_id,
        "consumer_generation": claim.generation,
        "consumer_type": claim.consumer_type,
    }


def _allocations(consumer: str, records: ConsumerRecords) -> dict[str, dict[str, int]]:
    """Read a consumer's allocations from a driver's answer. Raises `ReshapeRefused` if unreadable."""
    try:
        return {uuid: dict(each["resources"]) for uuid, each in records[consumer]["allocations"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReshapeRefused(f"the driver's allocations of consumer {consumer} cannot be read") from error
