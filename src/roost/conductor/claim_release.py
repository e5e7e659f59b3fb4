"""The release of an instance's claim: the consumer is written with no allocations, at its generation.

So a conductor that was paused in between frees nothing that others have claimed since.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from roost.conductor.context import PlacementContext
from roost.ledger import Held
from roost.model.instance import Instance
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.scheduler.selection.claim_result import is_consumer_conflict, is_outage, one_line

ATTEMPTS = 4
"""Attempts to free a consumer that others change at the same time."""


async def free(context: PlacementContext, ended: Sequence[Instance]) -> list[Instance]:
    """Free the claims of instances; returns those whose claims are free.

    An instance that placement refuses keeps no other from being freed. Raises what placement raises if none
    could be freed, and if it does not answer.
    """
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


class Freeing(NamedTuple):
    """Instances whose claims were freed now, and the error of each whose claim placement refuses to free."""

    freed: list[str]
    refused: dict[str, PlacementError]


async def free_claims(context: PlacementContext, instances: Collection[str]) -> Freeing:
    """Free the claims of instances that have ended, by writes at the generations that are read first.

    Raises: what placement raises if it does not answer.
    """
    held = await context.placement.holdings(tuple(instances))
    if not held:
        return Freeing([], {})
    try:
        writes = tuple(_nothing_held(each) for each in held.values())
        await context.placement.write_allocations(writes)
        return Freeing([*held], {})
    except PlacementError as error:
        if is_outage(error):
            raise
    # One of them may be the cause: a write of several is refused as a whole.
    outcome = Freeing([], {})
    for uuid in held:
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
            await context.placement.write_allocations((_nothing_held(held),))
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
    at = {each.uuid: each.selection.generation for each in ended if each.selection is not None}
    # Instances without a claim, and claims of versions that stored no generation.
    if others := tuple(each.uuid for each in ended if at.get(each.uuid) is None):
        await context.placement.delete_allocations(others)
    if fenced := [each for each in ended if at.get(each.uuid) is not None]:
        writes = tuple(_nothing(each, at[each.uuid] or 0) for each in fenced)
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
    held = (await context.placement.holdings((instance.uuid,))).get(instance.uuid)
    if held is not None:
        write = _nothing(instance, held.consumer.generation)
        await context.placement.write_allocations((write,))


def _nothing_held(held: Held) -> ConsumerWrite:
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
        consumer=instance.uuid,
        allocations={},
        project_id=instance.project_id,
        user_id=instance.user_id,
        generation=generation,
    )
