"""Bodies of requests and responses of a placement service, to and from the client's types."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from roost.model.assignment import Assignment
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import (
    CannotAllocate,
    Conflict,
    PlacementError,
)
from roost.placement.interface import AllocationRequest, Provider, ProviderSummary


class FetchedPage(NamedTuple):
    """Allocation candidates, the providers of their trees by uuid, and the cursor of the next page if any."""

    requests: list[AllocationRequest]
    summaries: dict[str, ProviderSummary]
    next: str | None


class _Candidates(msgspec.Struct, frozen=True):
    allocation_requests: list[AllocationRequest]
    provider_summaries: dict[str, ProviderSummary]
    next: str | None = None


_decode = msgspec.json.Decoder(_Candidates).decode


def candidates_in(content: bytes) -> FetchedPage:
    """Return the candidates of a response, and the providers of their trees by uuid."""
    found = _decode(content)
    return FetchedPage(found.allocation_requests, found.provider_summaries, found.next)


def v1_bodies(writes: Sequence[ConsumerWrite]) -> dict[str, Any]:
    bodies: dict[str, Any] = {}
    for write in writes:
        body = bodies[write.consumer] = {
            "allocations": {name: {"resources": each} for name, each in write.allocations.items()},
            "project_id": write.project_id,
            "user_id": write.user_id,
            "consumer_type": write.consumer_type,
        }
        if write.generation is not UNSET:
            body["consumer_generation"] = write.generation
        if write.group is not None:
            body["group"] = {
                "uuid": write.group.group,
                "policy": write.group.policy,
                "max_server_per_host": write.group.max_per_host,
            }
            if write.group.held_by is not None:
                body["group"]["held_by"] = write.group.held_by
        if isinstance(write.assignment, Assignment):
            body["assignment"] = msgspec.to_builtins(write.assignment)
            if write.beside is not None:
                body["assignment"]["beside"] = write.beside
        elif write.assignment is None:
            body["assignment"] = None
    return bodies


def refused_write(error: PlacementError) -> PlacementError:
    """Return the error of a write as the interface has it: services have no code for `CannotAllocate`."""
    return CannotAllocate(str(error)) if type(error) is Conflict else error


def needs_v1(write: ConsumerWrite) -> bool:
    """Return whether a write has parts that the Placement API lacks, so that only ``/v1`` takes it."""
    return write.group is not None or isinstance(write.assignment, Assignment)


def are_typed(writes: Sequence[ConsumerWrite]) -> bool:
    return all(write.consumer_type is not None for write in writes)


def inventory_records(inventories: Mapping[str, Inventory]) -> dict[str, Any]:
    return {name: msgspec.structs.asdict(each) for name, each in inventories.items()}


def provider_in(found: dict[str, Any]) -> Provider:
    return Provider(
        uuid=found["uuid"],
        name=found["name"],
        generation=found["generation"],
        parent=found["parent_provider_uuid"],
        root=found["root_provider_uuid"],
    )
