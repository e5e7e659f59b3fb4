"""The release of claims: of instances that end, and of claims that are made after the end of an instance.

The consumer is written with no allocations, at its generation. So a conductor that was paused in between
frees nothing that others have claimed since.

A conductor asks the scheduler for a claim, and is paused or killed before it has the answer. Another one
takes its request over and finishes it: the instance cannot be placed, all its builds fail, or its user
deletes it. Then the claim is made, and the conductor that asked for it may be dead. So an instance for which
an earlier owner of its request may still claim is noted when its request is finished and when it is
forgotten, and its claims are read for a while. A claim that it holds after its end is freed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from roost.conductor.context import PlacementContext
from roost.ledger import Held
from roost.model.instance import Instance
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.scheduler.selection.claim_result import is_consumer_conflict, is_outage, one_line
from roost.state.api_database.past import count_look, noted_instances_after
from roost.state.api_database.tables import API
from roost.state.cell_database.conductor_work import find_in_error
from roost.state.leases import Tenure, leases_of_kind
from roost.storage import StorageError

ATTEMPTS = 4
"""Attempts to free a consumer that others change at the same time."""

LOOK_SECONDS = 20.0
"""Seconds between two looks for late claims."""


async def free(context: PlacementContext, ended: Sequence[Instance]) -> list[Instance]:
    """Free the claims of instances; returns those whose claims are free.

    An instance that placement refuses keeps no other from being freed. Raises what placement raises if none
    could be freed, and if it does not answer. An instance that was moving is freed with what its move holds.
    """
    moving = [each for each in ended if each.move is not None]
    if moving:
        ended = [each for each in ended if each.move is None]
        freed = await _free_with_moves(context, moving)
        return [*freed, *(await free(context, ended) if ended else ())]
    try:
        await _free_together(context, ended)
        return [*ended]
    except Exception as error:
        if is_outage(error):
            raise
        # One of them may be the cause: a write of several is refused as a whole.
        outcomes = await context.together([_try_to_free(context, each) for each in ended])
    refused = [outcome for outcome in outcomes if outcome is not None]
    if len(refused) == len(ended):
        raise refused[0].error
    for each in refused:
        values = {"instance": each.instance.uuid, "error": one_line(each.error)}
        context.log("the claim of an instance cannot be freed", values, "warning")
    return [each for each, outcome in zip(ended, outcomes, strict=True) if outcome is None]


async def _free_with_moves(context: PlacementContext, moving: Sequence[Instance]) -> list[Instance]:
    """Free instances that were moving, and their moves; returns those that are free."""
    consumers = [uuid for each in moving for uuid in (each.consumer, each.move) if uuid is not None]
    refused = (await free_claims(context, consumers)).refused
    for uuid, error in refused.items():
        context.log(
            "the claim of an instance cannot be freed",
            {"consumer": uuid, "error": one_line(error)},
            "warning",
        )
    return [each for each in moving if each.consumer not in refused and each.move not in refused]


class Freeing(NamedTuple):
    """Consumers whose claims were freed now, and the error of each whose claim placement refuses to free."""

    freed: list[str]
    refused: dict[str, PlacementError]


async def free_claims(context: PlacementContext, consumers: Collection[str]) -> Freeing:
    """Free the claims of consumers that have ended, by writes at the generations that are read first.

    Raises: what placement raises if it does not answer.
    """
    held = await context.placement.holdings(tuple(consumers))
    if not held:
        return Freeing([], {})
    try:
        writes = tuple(nothing_held(each) for each in held.values())
        await context.placement.write_allocations(writes)
        return Freeing([*held], {})
    except PlacementError as error:
        if is_outage(error):
            raise
    # One of them may be the cause: a write of several is refused as a whole.
    outcome = Freeing([], {})
    # Also those that held nothing: what one of them held may be another's now.
    for uuid in consumers:
        try:
            if await _free_what_is_there(context, uuid):
                outcome.freed.append(uuid)
        except PlacementError as error:
            if is_outage(error):
                raise
            outcome.refused[uuid] = error
    return outcome


async def _free_what_is_there(context: PlacementContext, uuid: str) -> bool:
    """Free the claim of an instance that others may change too; returns whether it held something."""
    for left in reversed(range(ATTEMPTS)):
        held = (await context.placement.holdings((uuid,))).get(uuid)
        if held is None:
            return False
        try:
            await context.placement.write_allocations((nothing_held(held),))
            return True
        except ConcurrentUpdate as error:
            if not left or not is_consumer_conflict(error):
                raise
    raise AssertionError("not reached")


class _Refused(NamedTuple):
    """An instance whose claim could not be freed, and the error."""

    instance: Instance
    error: Exception


async def _free_together(context: PlacementContext, ended: Sequence[Instance]) -> None:
    at = {each.consumer: each.selection.generation for each in ended if each.selection is not None}
    # Instances without a claim, and claims of versions that stored no generation.
    if others := tuple(each.consumer for each in ended if at.get(each.consumer) is None):
        await context.placement.delete_allocations(others)
    if fenced := [each for each in ended if at.get(each.consumer) is not None]:
        writes = tuple(_nothing(each, at[each.consumer] or 0) for each in fenced)
        await context.placement.write_allocations(writes)


async def _try_to_free(context: PlacementContext, instance: Instance) -> _Refused | None:
    """Free one claim; returns the error if it concerns this claim alone."""
    try:
        await _free_one(context, instance)
    except Exception as error:
        if is_outage(error):
            raise
        return _Refused(instance, error)
    return None


async def _free_one(context: PlacementContext, instance: Instance) -> None:
    """Free a claim that differs from its instance's row: the row was not written after the claim changed."""
    held = (await context.placement.holdings((instance.consumer,))).get(instance.consumer)
    if held is not None:
        write = _nothing(instance, held.consumer.generation)
        await context.placement.write_allocations((write,))


def nothing_held(held: Held) -> ConsumerWrite:
    """Return the write that frees all that a consumer holds, at its generation."""
    consumer = held.consumer
    return ConsumerWrite(
        consumer=consumer.uuid,
        allocations={},
        project_id=consumer.project_id,
        user_id=consumer.user_id,
        generation=consumer.generation,
    )


def _nothing(instance: Instance, generation: int) -> ConsumerWrite:
    return ConsumerWrite(
        consumer=instance.consumer,
        allocations={},
        project_id=instance.project_id,
        user_id=instance.user_id,
        generation=generation,
    )


async def free_late_claims(context: PlacementContext, tenure: Tenure) -> None:
    """Read the claims of the noted instances once, and free those of instances that have ended.

    Of several conductors only one does so: the holder of the first lease. It does no harm if two do. A look
    that a cell did not answer does not count. Raises `StorageError`, and what placement raises.
    """
    leases = await context.read(API, leases_of_kind(tenure.kind))
    first = next((lease for lease in leases if not lease.vacant), None)
    if first is None or first.holder != tenure.holder:
        return
    after, silent = "", False
    while noted := await context.read(API, noted_instances_after(after)):
        ended = [uuid for uuid, cell in noted.items() if cell is None]
        for cell, uuids in _by_cell(noted).items():
            try:
                ended += await context.read(f"cell/{cell}", find_in_error(tuple(uuids)))
            except StorageError as error:
                silent = True
                values = {"cell": cell, "error": one_line(error)}
                context.log("a cell cannot be asked of late claims", values, "debug")
        await _free(context, ended)
        after = [*noted][-1]
    if not silent:
        await context.write(API, count_look())


def _by_cell(noted: Mapping[str, str | None]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, cell in noted.items():
        if cell is not None:
            found[cell].append(uuid)
    return found


async def _free(context: PlacementContext, ended: Collection[str]) -> None:
    outcome = await free_claims(context, ended)
    for uuid, error in outcome.refused.items():
        values = {"instance": uuid, "error": one_line(error)}
        context.log("a claim cannot be freed", values, "warning")
    for uuid in outcome.freed:
        values = {"instance": uuid}
        context.log("a claim that came after the end of its instance is freed", values, "warning")
