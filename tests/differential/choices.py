"""The names of a small world, and random choices among them."""

from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from differential.operations import generation
from support.placement_api import uuid_of

PROVIDERS = [uuid_of(f"p{number}") for number in range(9)]
CONSUMERS = [uuid_of(f"c{number}") for number in range(6)]
AGGREGATES = [uuid_of(f"a{number}") for number in range(3)]
NOWHERE = uuid_of("none")
CUSTOM_CLASSES = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
CLASSES = ["VCPU", "VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", *CUSTOM_CLASSES]
SHARES = "MISC_SHARES_VIA_AGGREGATE"
CUSTOM_TRAITS = ["CUSTOM_X", "CUSTOM_Y", "CUSTOM_Z"]
TRAITS = ["HW_CPU_X86_AVX", "HW_NUMA_ROOT", *CUSTOM_TRAITS]
PROJECTS = ["project-1", "project-2"]
USERS = ["user-1", "user-2"]
TYPES = ["INSTANCE", "MIGRATION"]


class Choices:
    """Random choices, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _some(self, values: list[str], least: int = 0, most: int = 3) -> list[str]:
        values = sorted(set(values))
        return self._random.sample(values, self._random.randint(least, min(most, len(values))))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _provider(self) -> str:
        return NOWHERE if self._chance(0.03) else self._random.choice(PROVIDERS)

    def _consumer(self) -> str:
        return self._random.choice(CONSUMERS)

    def _class(self) -> str:
        return "CUSTOM_UNKNOWN" if self._chance(0.02) else self._random.choice(CLASSES)

    def _trait(self) -> str:
        if self._chance(0.02):
            return "CUSTOM_UNKNOWN"
        return self._random.choice([*TRAITS, SHARES] if self._chance(0.2) else TRAITS)

    def _generation(self, provider: str) -> str:
        return generation(provider, self._one(-1, 1) if self._chance(0.08) else 0)

    def _amount(self) -> int:
        return self._random.choice((1, 1, 1, 2, 2, 3, 4, 8, 16))

    def _resources(self) -> str:
        names = self._some(CLASSES, 1, 2)
        return ",".join(f"{name}:{self._one(1, 1, 1, 2, 3, 4)}" for name in names)

    def _required(self, version: int) -> str:
        if version >= 39 and self._chance(0.3):
            return "in:" + ",".join(self._some(TRAITS, 1, 3))
        forbid = 0.35 if version >= 22 else 0.02
        return ",".join(
            ("!" if self._chance(forbid) else "") + self._trait() for _ in range(self._one(1, 1, 2))
        )

    def _member_of(self, version: int) -> str:
        aggregates = self._some(AGGREGATES, 1, 2)
        text = aggregates[0] if len(aggregates) == 1 else "in:" + ",".join(aggregates)
        return ("!" if self._chance(0.3 if version >= 32 else 0.02) else "") + text


def url_of(path: str, query: list[tuple[str, str]]) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(query, quote_via=quote, safe=':,!')}" if query else path
