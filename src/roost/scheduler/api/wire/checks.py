"""Refuses values of request specs that their types allow and that are invalid nevertheless."""

from collections.abc import Iterator

from roost.model.spec import RequestSpec
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.scheduler.errors import BadRequestSpec

MOST_GROUPS = 100
"""Most request groups of one request spec, beside the flavor's. More are refused."""


def check_spec(spec: RequestSpec) -> RequestSpec:
    """Return the request spec. Raises `BadRequestSpec` for a value that it may not have."""
    for name, value in _names(spec):
        if not is_storable(value, MAX_NAME):
            raise BadRequestSpec(f"{name} {value[:40]!r} is empty, too long or not storable text")
    for name, amount, least in _amounts(spec):
        if not least <= amount <= MAX_INT:
            raise BadRequestSpec(f"{name} is {amount}, and must be from {least} to {MAX_INT}")
    if len(spec.requested_resources) > MOST_GROUPS:
        raise BadRequestSpec(f"{len(spec.requested_resources)} request groups, at most {MOST_GROUPS} may be")
    return spec


def _names(spec: RequestSpec) -> Iterator[tuple[str, str]]:
    yield "project_id", spec.project_id
    yield "user_id", spec.user_id
    yield "flavor.name", spec.flavor.name
    if spec.group is not None:
        yield "group.uuid", spec.group.uuid


def _amounts(spec: RequestSpec) -> Iterator[tuple[str, int, int]]:
    """Yield each amount with its name and its least allowed value."""
    flavor = spec.flavor
    for name in ("vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "swap_mb"):
        yield f"flavor.{name}", getattr(flavor, name), 0
    if spec.group is not None:
        yield "group.max_server_per_host", spec.group.max_server_per_host, 1
    for group in spec.requested_resources:
        for name, amount in group.resources.items():
            yield f"{name} of request group {group.suffix!r}", amount, 1
