"""Queries of allocation candidates, in the form that Nova sends."""

from collections.abc import Iterator
from typing import Final

from roost.bench.fleets import COMMON_TRAITS, FleetPlan
from roost.model.vocabulary import DISABLED_TRAIT

TRAITS: Final = f"{COMMON_TRAITS[3]},{COMMON_TRAITS[17]},!{DISABLED_TRAIT}"
SIZES: Final = [(vcpus, vcpus * memory) for vcpus in (1, 2, 4, 8) for memory in (1_024, 2_048)]
"""VCPUs and MiB of the flavors of consecutive requests."""


class QueryTemplate:
    """A query with placeholders for a flavor's VCPUs and memory.

    ``fleet``: the name of the plan whose fleet has candidates for it.
    """

    def __init__(self, name: str, fleet: str, text: str) -> None:
        self.name = name
        self.fleet = fleet
        self._text = text

    def paths(self, limit: int | None) -> Iterator[str]:
        """Yield the path of a request for each of `SIZES`."""
        for vcpus, memory in SIZES:
            query = self._text.format(vcpus=vcpus, memory=memory)
            end = "" if limit is None else f"&limit={limit}"
            yield f"/allocation_candidates?{query}{end}"


def _devices(groups: int, policy: str) -> str:
    asked = "&".join(f"resources_F{number}=SRIOV_NET_VF:1" for number in range(groups))
    return f"resources=VCPU:{{vcpus}},MEMORY_MB:{{memory}}&{asked}&group_policy={policy}"


QUERIES: Final = (
    QueryTemplate(
        "flat",
        "flat",
        f"resources=VCPU:{{vcpus}},MEMORY_MB:{{memory}},DISK_GB:20&required={TRAITS}",
    ),
    QueryTemplate(
        "nested, same_subtree",
        "nested",
        f"resources=DISK_GB:20&required={TRAITS}&resources_CPU=VCPU:{{vcpus}},MEMORY_MB:{{memory}}"
        "&resources_NIC=SRIOV_NET_VF:1&required_NIC=CUSTOM_PHYSNET_1&group_policy=none"
        "&same_subtree=_CPU,_NIC",
    ),
    QueryTemplate("8 devices, 6 groups, isolate", "wide8", _devices(6, "isolate")),
    QueryTemplate("8 devices, 6 groups, none", "wide8", _devices(6, "none")),
    QueryTemplate("32 devices, 32 groups, none", "wide32", _devices(32, "none")),
)


def queries_for(plan: FleetPlan) -> list[QueryTemplate]:
    """Return the queries for a plan's fleet."""
    return [query for query in QUERIES if query.fleet == plan.name]
