"""Facts of an instance whose build failed: its request, its claim, and the reasons of the failures."""

from collections.abc import Sequence

import msgspec

from roost.model.instance import Instance
from roost.model.spec import Flavor, RequestSpec, Selection


def claimed_by(instance: Instance, cell: str) -> Selection:
    """Return the claim of an instance, as far as its row says."""
    claimed = instance.selection
    if claimed is not None:
        # A selection that an earlier version stored has no ordinal.
        return msgspec.structs.replace(claimed, ordinal=claimed.ordinal or instance.attempt)
    return Selection(instance.host or "", instance.node or "", cell, {}, {}, 0.0)


def spec_of(instance: Instance) -> RequestSpec:
    """Return the request spec of an instance; if none is stored, one with the facts of its row."""
    if instance.spec is not None:
        return instance.spec
    claimed = instance.alternates[0].allocations if instance.alternates else {}
    amounts: dict[str, int] = {}
    for resources in claimed.values():
        for name, amount in resources.items():
            amounts[name] = amounts.get(name, 0) + amount
    wanted = {f"resources:{name}": str(amount) for name, amount in amounts.items()}
    flavor = Flavor(instance.flavor, 0, 0, extra_specs=wanted)
    return RequestSpec(project_id=instance.project_id, user_id=instance.user_id, flavor=flavor)


def all_reasons(attempts: Sequence[str], refusals: Sequence[str]) -> str:
    """Return the reason of an instance in error: why each attempt failed, and why no further one is made."""
    return f"Exceeded maximum number of retries after {len(attempts)} attempts: " + "; ".join(
        (*attempts, *refusals)
    )
