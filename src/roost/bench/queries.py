"""The allocation candidates that are asked for, as Nova asks."""

from collections.abc import Iterator
from typing import Final

from roost.bench.fleets import COMMON_TRAITS, FleetPlan
from roost.model.vocabulary import DISABLED_TRAIT

TRAITS: Final = f"{COMMON_TRAITS[3]},{COMMON_TRAITS[17]},!{DISABLED_TRAIT}"
SIZES: Final = [(vcpus, vcpus * memory) for vcpus in (1, 2, 4, 8) for memory in (1_024, 2_048)]
"""vCPUs and MiB of the flavors that are asked for in turn."""


class Shape:
    """A kind of query: ``name``, the fleet that it is for, and its parameters for a flavor."""

    def __init__(self, name: str, fleet: str, text: str) -> None:
        self.name = name
        self.fleet = fleet
        self._text = text

    def paths(self, limit: int | None) -> Iterator[str]:
        """A path for each of `SIZES`."""
        for vcpus, memory in SIZES:
            query = self._text.format(vcpus=vcpus, memory=memory)
            end = "" if limit is None else f"&limit={limit}"
            yield f"/allocation_candidates?{query}{end}"


def _devices(groups: int, policy: str) -> str:
    asked = "&".join(f"resources_F{number}=SRIOV_NET_VF:1" for number in range(groups))
    return f"resources=VCPU:{{vcpus}},MEMORY_MB:{{memory}}&{asked}&group_policy={policy}"


SHAPES: Final = (
    Shape(
        "flat",
        "flat",
        f"resources=VCPU:{{vcpus}},MEMORY_MB:{{memory}},DISK_GB:20&required={TRAITS}",
    ),
    Shape(
        "nested, same_subtree",
        "nested",
        f"resources=DISK_GB:20&required={TRAITS}&resources_CPU=VCPU:{{vcpus}},MEMORY_MB:{{memory}}"
        "&resources_NIC=SRIOV_NET_VF:1&required_NIC=CUSTOM_PHYSNET_1&group_policy=none"
        "&same_subtree=_CPU,_NIC",
    ),
    Shape("8 devices, 6 groups, isolate", "wide8", _devices(6, "isolate")),
    Shape("8 devices, 6 groups, none", "wide8", _devices(6, "none")),
    Shape("32 devices, 32 groups, none", "wide32", _devices(32, "none")),
)


def shapes_for(plan: FleetPlan) -> list[Shape]:
    """The queries that a fleet is asked."""
    return [shape for shape in SHAPES if shape.fleet == plan.name]
