"""What is kept from decision to decision changes no decision: compared with looking at all hosts anew.

A world of hosts goes through whatever may happen to it. Each decision is made twice on the same state, once
without anything kept, which is then taken back, and once by a scheduler that has been there all the time.
"""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler import SchedulerOptions
from roost.scheduler.cache import (
    equivalence_class,
    host_columns,
    host_index,
    plugin_roles,
    score_index,
    value_range,
)
from roost.scheduler.cache.equivalence_cache import CachedPool
from support.clouds import AGGREGATES, report, tell, uuid_of
from support.decided_worlds import FLAVORS, OPTIONS, World
from support.decisions import Step, decisions, happenings, made, make, reports

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["one by one", "many at once"])
def tiny(request: pytest.FixtureRequest) -> Iterator[None]:
    """Blocks of two hosts, so that there are several; and what is for many is done for few."""
    one_by_one = 48 if request.param == "one by one" else 0
    with (
        patch.object(host_columns, "SMALLEST_BLOCK", 2),
        patch.object(equivalence_class, "ONE_BY_ONE", one_by_one),
        patch.object(host_index, "ONE_BY_ONE", one_by_one),
        patch.object(score_index, "AT_ONCE", 4),
        patch.object(score_index, "MORE", 1),
        patch.object(value_range, "ONE_BY_ONE", one_by_one // 24),
        patch.object(equivalence_class, "MOST_NAMED", one_by_one // 8),
        patch.object(plugin_roles, "MOST_KEYS", 1 + one_by_one),
    ):
        yield


_STEPS = st.lists(decisions() | decisions() | happenings() | reports(), min_size=3, max_size=25)


def _go(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    world = World(options)
    begin(world)
    for step in steps:
        step(world)


@pytest.mark.usefixtures("tiny")
@SETTINGS
@given(made(), _STEPS, st.sampled_from(OPTIONS))
def test_decisions_are_those_of_looking_at_all_hosts_anew(
    begin: Step, steps: list[Step], options: SchedulerOptions
) -> None:
    _go(begin, steps, options)


@pytest.mark.nightly
@pytest.mark.usefixtures("tiny")
@settings(SETTINGS, max_examples=2_000)
@given(made(), _STEPS, st.sampled_from(OPTIONS))
def test_the_same_for_longer(begin: Step, steps: list[Step], options: SchedulerOptions) -> None:
    _go(begin, steps, options)


def test_the_hosts_of_these_worlds_are_kept() -> None:
    world = World(OPTIONS[0])
    for host in range(3):
        make(world, host)
        world.table.update([report(f"host{host}", uuid_of(host))])
    with patch.object(CachedPool, "ready", side_effect=AssertionError), pytest.raises(AssertionError):
        world.decide(RequestSpec(project_id="p", user_id="u", flavor=FLAVORS[0]), 1, 0, 1, keep=True)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("key", ["ram", "build_failure"])
def test_another_multiplier_of_a_known_key_counts_at_once(key: str) -> None:
    world = World(OPTIONS[0])

    def say(host: int, multiplier: str) -> None:
        aggregate = HostAggregate(AGGREGATES[0], AGGREGATES[0], {f"{key}_weight_multiplier": multiplier})
        more = {"aggregates": (aggregate,), "failed_builds": host}
        tell(world.table, [report(f"host{host}", uuid_of(host), **more)])

    for host in range(6):
        make(world, host, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096 * (host + 1))})
        say(host, "1")
    asked = RequestSpec(project_id="p", user_id="u", flavor=Flavor("diskless", 1, 512, 0))
    for multiplier in ("1", "-3", "2", "0"):
        for host in (0, 5):
            say(host, multiplier)
            world.decide(asked, 1, 2, 1, keep=True)


@pytest.mark.usefixtures("tiny")
def test_filter_of_many_keys_that_depends_on_claims_is_asked_again_after_each() -> None:
    [options] = [each for each in OPTIONS if "roominess" in each.multipliers][:1]
    world = World(options)
    make(world, 0, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(65_536)})
    world.table.update([report("host0", uuid_of(0))])
    # Two keys of room_for_two, more than classes hang on. Then two of three claims leave room for one.
    for vcpus, count in ((2, 1), (3, 1), (1, 3)):
        asked = RequestSpec(
            project_id="p",
            user_id="u",
            flavor=Flavor(f"of {vcpus}", vcpus, 512, 0),
            scheduler_hints={"roomy": ("yes",)},
        )
        world.decide(asked, count, 0, 1, keep=True)
