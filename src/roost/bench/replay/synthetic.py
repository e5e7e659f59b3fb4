"""Makes the workload of the demonstration from a seed: small, with each kind of request.

It covers two days on 120 hosts of four shapes in three cells, each of which is an availability zone.
Tenants of four kinds send batches, more by day than by night. The sizes of batches have a heavy tail;
lifetimes are log-normal. Some batches ask for anti-affinity, a zone, a trait of the host, or GPUs, and a few
for resources that no host has.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from roost.bench.replay.workload import (
    AVAILABILITY_ZONE,
    Child,
    Host,
    Workload,
    WorkloadAggregate,
    WorkloadHostTree,
    WorkloadRequest,
    into_bins,
    project_id,
)
from roost.model.allocation import GroupPolicy
from roost.model.spec import Flavor

HOUR: Final = 3600
GIB: Final = 1024
GPU_TRAIT: Final = "CUSTOM_GPU_L40S"
RARE_TRAIT: Final = "CUSTOM_FPGA_LOADED"
"""A trait that some requests require and no host has."""
AVX512: Final = "HW_CPU_X86_AVX512F"

ZONES: Final = tuple(WorkloadAggregate(f"zone-{n}", {AVAILABILITY_ZONE: f"az-{n}"}) for n in (1, 2, 3))
"""The availability zone of each cell, by the index of the cell."""
LOCAL_SSD: Final = WorkloadAggregate("local-ssd", {"ssd": "true"})

_GPUS = tuple(Child(f"gpu{n}", {"PGPU": 1}, (GPU_TRAIT,)) for n in range(2))
SHAPES: Final[dict[str, tuple[int, WorkloadHostTree]]] = {
    "compact": (60, WorkloadHostTree({"VCPU": 32, "MEMORY_MB": 128 * GIB, "DISK_GB": 600})),
    "roomy": (30, WorkloadHostTree({"VCPU": 64, "MEMORY_MB": 256 * GIB, "DISK_GB": 1200}, traits=(AVX512,))),
    "memory": (18, WorkloadHostTree({"VCPU": 48, "MEMORY_MB": 384 * GIB, "DISK_GB": 1500})),
    "gpu": (12, WorkloadHostTree({"VCPU": 48, "MEMORY_MB": 192 * GIB, "DISK_GB": 1000}, _GPUS)),
}
"""The shapes of hosts: name -> number of hosts and provider tree."""

_ONE_GPU = {"resources1:PGPU": "1", f"trait1:{GPU_TRAIT}": "required"}
_TWO_GPUS = _ONE_GPU | {"resources2:PGPU": "1", f"trait2:{GPU_TRAIT}": "required", "group_policy": "isolate"}
FLAVORS: Final = {
    flavor.name: flavor
    for flavor in (
        Flavor("small", 1, 2 * GIB, 10),
        Flavor("medium", 2, 4 * GIB, 20),
        Flavor("large", 4, 8 * GIB, 40),
        Flavor("xlarge", 8, 16 * GIB, 80),
        Flavor("compute", 16, 32 * GIB, 80),
        Flavor("memory", 4, 32 * GIB, 40),
        Flavor("database", 8, 64 * GIB, 200, {"aggregate_instance_extra_specs:ssd": "true"}),
        Flavor("gpu", 8, 32 * GIB, 100, _ONE_GPU),
        Flavor("gpu-pair", 16, 64 * GIB, 200, _TWO_GPUS),
        Flavor("colossal", 128, 512 * GIB, 100),
    )
}


BIN_SECONDS = 900
"""Width of the bins in virtual seconds. They are wider than a trace's, so that a replay takes seconds."""


class TenantKind(msgspec.Struct, frozen=True):
    """A kind of tenant.

    ``share``: its share of all batches. ``flavors``: the weight of each flavor by name. ``tail``: the
    exponent of the Pareto distribution of the batch size, which ends at ``largest``. ``lifetime``: factor of
    lifetimes, relative to the other kinds. ``in_a_zone``, ``apart`` and ``with_avx512``: the probability
    that a batch asks for a zone, anti-affinity, or AVX512.
    """

    share: float
    tenants: int
    flavors: dict[str, float]
    largest: int
    lifetime: float
    tail: float = 1.5
    in_a_zone: float = 0.0
    apart: float = 0.0
    with_avx512: float = 0.0


KINDS: Final = {
    "web": TenantKind(0.54, 8, {"small": 5, "medium": 4, "large": 2}, 8, 1.0, 1.7, in_a_zone=0.3, apart=0.3),
    "batch": TenantKind(0.24, 5, {"medium": 4, "xlarge": 4, "compute": 1}, 40, 0.4, 1.1, with_avx512=0.06),
    "data": TenantKind(0.19, 5, {"memory": 3, "database": 2}, 6, 2.0, in_a_zone=0.5, apart=0.4),
    "research": TenantKind(0.03, 2, {"gpu": 3, "gpu-pair": 1}, 2, 1.0),
}


class BatchDraft(msgspec.Struct, frozen=True):
    """A batch without a time of arrival. ``lifetimes``: float64[instances], relative to each other."""

    project_id: str
    flavor: Flavor
    lifetimes: NDArray[np.float64]
    availability_zone: str | None = None
    group_policy: GroupPolicy | None = None
    required_traits: frozenset[str] = frozenset()


def generate(rng: np.random.Generator, instances: int = 6000, hours: int = 48, peak: float = 0.9) -> Workload:
    """Return a workload of ``instances`` over ``hours`` of virtual time, the same for the same ``rng``.

    Lifetimes are scaled so that the instances that exist at once ask for at most the share ``peak`` of all
    VCPUs. Some instances are refused, so a few hundredths less are in use.
    """
    hosts = _hosts()
    drafts = _drafts(rng, instances)
    arrivals = _arrivals(rng, len(drafts), hours)
    vcpus = sum(host.shape.resources["VCPU"] for host in hosts)
    seconds = _lifetime_scale(drafts, arrivals, peak * vcpus)
    requests = [
        WorkloadRequest(
            at=int(at),
            project_id=draft.project_id,
            flavor=draft.flavor,
            lifetimes=tuple(int(lifetime * seconds) + 1 for lifetime in draft.lifetimes),
            availability_zone=draft.availability_zone,
            group_policy=draft.group_policy,
            required_traits=draft.required_traits,
        )
        for at, draft in zip(arrivals, drafts, strict=True)
    ]
    return Workload("synthetic", hosts, into_bins(requests, BIN_SECONDS), traits=(RARE_TRAIT, GPU_TRAIT))


def _hosts() -> tuple[Host, ...]:
    """Return the hosts of all shapes, distributed over the cells; those with GPUs over the first two."""
    hosts = []
    for name, (count, shape) in SHAPES.items():
        cells = 2 if shape.children else len(ZONES)
        for number in range(count):
            cell = number % cells
            # Every second round over the cells, so that all cells have such hosts.
            has_ssd = number // cells % 2 == 0
            aggregates = (ZONES[cell], LOCAL_SSD) if has_ssd else (ZONES[cell],)
            hosts.append(Host(f"{name}-{number:02}", shape, cell, aggregates))
    return tuple(hosts)


def _drafts(rng: np.random.Generator, instances: int) -> list[BatchDraft]:
    impossible = _impossible()[:instances]
    drafts: list[BatchDraft] = []
    missing = instances - len(impossible)
    kinds = list(KINDS.items())
    shares = [kind.share for _, kind in kinds]
    while missing > 0:
        name, kind = kinds[_choose(rng, shares)]
        draft = _draft(rng, name, kind, missing)
        drafts.append(draft)
        missing -= len(draft.lifetimes)
    for draft in impossible:
        drafts.insert(int(rng.integers(len(drafts) + 1)), draft)
    return drafts


def _draft(rng: np.random.Generator, name: str, kind: TenantKind, at_most: int) -> BatchDraft:
    size = min(int(rng.pareto(kind.tail)) + 1, kind.largest, at_most)
    zone = ZONES[int(rng.integers(len(ZONES)))].metadata[AVAILABILITY_ZONE]
    flavor = list(kind.flavors)[_choose(rng, list(kind.flavors.values()))]
    # Most instances of a batch end together: their lifetimes vary little around a common one.
    lifetimes = kind.lifetime * rng.lognormal(0.0, 1.2) * rng.lognormal(0.0, 0.25, size)
    return BatchDraft(
        project_id=project_id(f"synthetic/{name}-{rng.integers(kind.tenants)}"),
        flavor=FLAVORS[flavor],
        lifetimes=lifetimes,
        availability_zone=zone if rng.random() < kind.in_a_zone else None,
        group_policy="anti-affinity" if rng.random() < kind.apart and size > 1 else None,
        required_traits=frozenset({AVX512}) if rng.random() < kind.with_avx512 else frozenset(),
    )


def _impossible() -> list[BatchDraft]:
    """Return batches of each kind that fit no host, not even an empty one."""
    project, life = project_id("synthetic/hopeful"), np.ones(1)
    zone_without_gpus = ZONES[2].metadata[AVAILABILITY_ZONE]
    return 4 * [
        BatchDraft(project, FLAVORS["colossal"], life),
        BatchDraft(project, FLAVORS["gpu"], life, availability_zone=zone_without_gpus),
        BatchDraft(project, FLAVORS["small"], life, required_traits=frozenset({RARE_TRAIT})),
    ]


def _choose(rng: np.random.Generator, weights: Sequence[float]) -> int:
    """Draw an index of ``weights``, each with the probability of its share of their sum."""
    sums = np.cumsum(weights)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _arrivals(rng: np.random.Generator, count: int, hours: int) -> NDArray[np.int64]:
    """Draw ``count`` ascending seconds: int64[count] within ``hours``, densest about 15:00 of each day."""
    minutes = np.arange(hours * 60 + 1) / 60
    rate = 1 + 0.6 * np.sin((minutes - 9) * 2 * np.pi / 24)
    share = np.concatenate(([0.0], np.cumsum(rate[:-1])))
    return np.sort(np.interp(rng.random(count) * share[-1], share, minutes * HOUR)).astype(np.int64)


def _lifetime_scale(drafts: Sequence[BatchDraft], arrivals: NDArray[np.int64], vcpus: float) -> float:
    """Find by bisection the factor of lifetimes at which at most ``vcpus`` are asked for at once."""
    sizes = [len(draft.lifetimes) for draft in drafts]
    starts = np.repeat(arrivals, sizes)
    lifetimes = np.concatenate([draft.lifetimes for draft in drafts])
    # A request that fits no host never runs, so it does not count.
    possible = [0 if draft.flavor is FLAVORS["colossal"] else draft.flavor.vcpus for draft in drafts]
    amounts = np.repeat(possible, sizes)
    changes = np.concatenate((amounts, -amounts))
    low, high = 0.0, 100.0 * float(HOUR)
    for _ in range(30):
        middle = (low + high) / 2
        order = np.argsort(np.concatenate((starts, starts + lifetimes * middle)), kind="stable")
        if np.cumsum(changes[order]).max() > vcpus:
            high = middle
        else:
            low = middle
    return low
