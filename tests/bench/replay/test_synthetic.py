"""The demo's workload: the same for the same seed, of the promised size, with something of everything."""

import heapq
from collections import Counter

import numpy as np
import pytest

from roost.bench.replay.synthetic import AVX512, FLAVORS, GPU_TRAIT, RARE_TRAIT, generate
from roost.bench.replay.workload import Workload, WorkloadRequest
from roost.model.vocabulary import is_custom, standard_traits

SEEDS = [0, 42, 2024]


@pytest.fixture(scope="module", params=SEEDS)
def workload(request: pytest.FixtureRequest) -> Workload:
    return generate(np.random.default_rng(request.param))


def requests(workload: Workload) -> list[WorkloadRequest]:
    return [each for bin_ in workload.bins for each in bin_.requests]


def test_same_seed_gives_the_same_workload_and_another_seed_another() -> None:
    first, again, other = (generate(np.random.default_rng(seed), instances=300) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("instances", [1, 12, 13, 100])
def test_size_is_as_asked(instances: int) -> None:
    assert generate(np.random.default_rng(0), instances=instances, hours=5).instances == instances


def test_default_size(workload: Workload) -> None:
    assert workload.instances == 6000
    assert len(workload.hosts) == len({host.name for host in workload.hosts}) == 120
    assert Counter(host.cell for host in workload.hosts) == {0: 42, 1: 42, 2: 36}
    assert workload.bins[0].start >= 0 and workload.bins[-1].start < 48 * 3600


def test_arrivals_are_in_order_and_every_instance_lives(workload: Workload) -> None:
    times = [each.at for each in requests(workload)]
    assert times == sorted(times)
    assert all(life is not None and life > 0 for each in requests(workload) for life in each.lifetimes)


def test_more_arrives_by_day_than_by_night(workload: Workload) -> None:
    by_day = [8 <= each.at / 3600 % 24 < 22 for each in requests(workload)]
    assert sum(by_day) / len(by_day) > 0.65  # a constant rate would give 0.58


def test_what_runs_at_once_asks_for_the_promised_share_of_cpus(workload: Workload) -> None:
    capacity = sum(host.shape.resources["VCPU"] for host in workload.hosts)
    running: list[tuple[int, int]] = []
    used = peak = 0
    for each in requests(workload):
        if each.flavor == FLAVORS["colossal"]:
            continue
        while running and running[0][0] <= each.at:
            used -= heapq.heappop(running)[1]
        for departure in each.departures:
            assert departure is not None
            heapq.heappush(running, (departure, each.flavor.vcpus))
            used += each.flavor.vcpus
        peak = max(peak, used)
    assert peak / capacity == pytest.approx(0.9, abs=0.02)


def test_there_is_something_of_everything(workload: Workload) -> None:
    everything = requests(workload)
    assert {each.flavor.name for each in everything} == set(FLAVORS)
    assert {each.availability_zone for each in everything} == {None, "az-1", "az-2", "az-3"}
    assert all(each.count > 1 for each in everything if each.group_policy == "anti-affinity")
    assert any(each.group_policy == "anti-affinity" for each in everything)
    assert any(AVX512 in each.required_traits for each in everything)
    assert max(each.count for each in everything) >= 20  # the tail is heavy


def test_some_requests_can_never_be_placed(workload: Workload) -> None:
    widest = max(host.shape.resources["VCPU"] for host in workload.hosts)
    zones_with_gpus = {host.availability_zone for host in workload.hosts if host.shape.children}
    everything = requests(workload)
    assert sum(each.flavor.vcpus > widest for each in everything) == 4
    assert sum(RARE_TRAIT in each.required_traits for each in everything) == 4
    gpu = [each for each in everything if each.flavor.name == "gpu"]
    assert sum(each.availability_zone not in {None, *zones_with_gpus} for each in gpu) == 4


def test_custom_names_are_declared_and_all_others_are_standard(workload: Workload) -> None:
    shapes = [host.shape for host in workload.hosts]
    of_roots = {trait for shape in shapes for trait in shape.traits}
    of_children = {trait for shape in shapes for child in shape.children for trait in child.traits}
    asked = {trait for each in requests(workload) for trait in each.required_traits}
    traits = of_roots | of_children | asked
    assert {trait for trait in traits if is_custom(trait)} == set(workload.traits) == {RARE_TRAIT, GPU_TRAIT}
    assert {trait for trait in traits if not is_custom(trait)} <= set(standard_traits())
