"""Writes to a placement service: of claims, and of a provider's inventories, traits and aggregates.

A write whose caller names no generation first reads the generation of each provider or consumer concerned, in
one request each, and writes at these. Reads and write are repeated after a conflict with another writer.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET

from roost.ledger import Held
from roost.model.allocation import Consumer
from roost.placement.client.bodies import are_typed, inventory_records, refused_write, v1_bodies
from roost.placement.client.transport import (
    LATEST,
    OLDEST,
    TYPED,
    UNTYPED,
    OlderService,
    Transport,
    path_to,
)
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.placement.errors import ConcurrentUpdate, Conflict

T = TypeVar("T")

ATTEMPTS = 10
"""Attempts of a write that checks no generation. The conflict in the last one is raised."""


async def write_claims(transport: Transport, writes: Sequence[ConsumerWrite], *, by_v1: bool) -> None:
    """Write the claims of some consumers, all or none. ``by_v1``: with server groups and assignments."""

    async def write() -> None:
        if by_v1:
            await _post(transport, "/v1/allocations", v1_bodies(writes))
            return
        bodies = await _claim_bodies(transport, writes)
        await _post_claims(transport, "/allocations", bodies, bodies, writes)

    await _write_at_present(transport, write, (), writes)


async def reshape(
    transport: Transport, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]
) -> None:
    """Write inventories and claims, all or nothing."""

    async def write() -> None:
        bodies = await _claim_bodies(transport, writes)
        body = {
            "inventories": {each.provider: await _inventory_body(transport, each) for each in inventories},
            "allocations": bodies,
        }
        await _post_claims(transport, "/reshaper", body, bodies, writes)

    await _write_at_present(transport, write, inventories, writes)


async def write_part(
    transport: Transport, provider: str, part: str, value: object, generation: int | None
) -> int:
    """Write a part of a provider at a generation, or at the present one. Returns the new one.

    ``part``: inventories, traits or aggregates, as the last segment of the URL.
    """

    async def put(at: int) -> int:
        path = path_to("resource_providers", provider, part)
        answer = await transport.call("PUT", path, {part: value, "resource_provider_generation": at})
        new: int = answer["resource_provider_generation"]
        return new

    async def put_at_present() -> int:
        return await put(await _generation(transport, provider))

    async def never() -> bool:
        return False

    if generation is not None:
        return await put(generation)
    return await _retry_conflicts(put_at_present, never)


async def read_part(transport: Transport, provider: str, part: str) -> dict[str, Any]:
    """Read a part of a provider, with its generation. Raises `NotFound`."""
    found: dict[str, Any] = await transport.call("GET", path_to("resource_providers", provider, part))
    return found


async def read_claims(transport: Transport, consumer: str) -> Held | None:
    """Read the claims of a consumer; None if it has none."""
    found = await transport.call("GET", path_to("allocations", consumer))
    if not found["allocations"]:
        return None
    owner = Consumer(
        uuid=consumer,
        project_id=found["project_id"],
        user_id=found["user_id"],
        generation=found["consumer_generation"],
        consumer_type=found.get("consumer_type"),
    )
    return Held(owner, {provider: each["resources"] for provider, each in found["allocations"].items()})


async def _write_at_present(
    transport: Transport,
    write: Callable[[], Awaitable[None]],
    inventories: Sequence[NewInventories],
    writes: Sequence[ConsumerWrite],
) -> None:
    """Write at the present generations where the caller names none; repeat if only these have changed.

    Raises: `ConcurrentUpdate` at once if a generation that the caller named is not the present one.
    """

    async def is_outdated() -> bool:
        for new in inventories:
            if new.generation is not None and await _generation(transport, new.provider) != new.generation:
                return True
        for each in writes:
            if each.generation is not UNSET and each.generation != await _consumer_generation(
                transport, each.consumer
            ):
                return True
        return False

    unchecked = any(new.generation is None for new in inventories) or any(
        each.generation is UNSET for each in writes
    )
    await _retry_conflicts(write, is_outdated) if unchecked else await write()


async def _retry_conflicts(write: Callable[[], Awaitable[T]], is_final: Callable[[], Awaitable[bool]]) -> T:
    """Write, and repeat after a conflict unless ``is_final`` says that it would occur again."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await write()
        except ConcurrentUpdate:
            if await is_final():
                raise
    return await write()


async def _post_claims(
    transport: Transport, path: str, body: object, bodies: dict[str, Any], writes: Sequence[ConsumerWrite]
) -> None:
    """Send a body, with consumer types if each write has one and the service knows them.

    ``bodies``: the parts of the body that belong to the writes.
    """
    if are_typed(writes):
        try:
            await _post(transport, path, body, needs=TYPED)
            return
        except OlderService:
            for each in bodies.values():
                del each["consumer_type"]
    await _post(transport, path, body, UNTYPED)


async def _post(
    transport: Transport, path: str, body: object, version: str = LATEST, needs: str = OLDEST
) -> None:
    try:
        await transport.call("POST", path, body, version=version, needs=needs)
    except Conflict as error:
        raise refused_write(error) from error


async def _claim_bodies(transport: Transport, writes: Sequence[ConsumerWrite]) -> dict[str, Any]:
    bodies = {}
    typed = are_typed(writes)
    for write in writes:
        generation = write.generation
        if generation is UNSET:
            generation = await _consumer_generation(transport, write.consumer)
        bodies[write.consumer] = {
            "allocations": {name: {"resources": each} for name, each in write.allocations.items()},
            "project_id": write.project_id,
            "user_id": write.user_id,
            "consumer_generation": generation,
            **({"consumer_type": write.consumer_type} if typed else {}),
            **({"mappings": write.mappings} if write.mappings else {}),
        }
    return bodies


async def _inventory_body(transport: Transport, new: NewInventories) -> dict[str, Any]:
    generation = new.generation
    if generation is None:
        generation = await _generation(transport, new.provider)
    return {"inventories": inventory_records(new.inventories), "resource_provider_generation": generation}


async def _consumer_generation(transport: Transport, consumer: str) -> int | None:
    held = await read_claims(transport, consumer)
    return None if held is None else held.consumer.generation


async def _generation(transport: Transport, provider: str) -> int:
    found = await read_part(transport, provider, "aggregates")
    generation: int = found["resource_provider_generation"]
    return generation
