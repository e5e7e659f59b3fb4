"""When something is kept, and when it is not."""

from collections.abc import Hashable
from unittest.mock import patch

import numpy as np
import pytest

from roost.fleet import Fleet
from roost.fleet.columns import Bools
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.inventory import Inventory
from roost.model.spec import RequestSpec, ServerGroup
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.scheduler import SchedulerOptions
from roost.scheduler.cache import equivalence_cache as cache_module
from roost.scheduler.cache import plugin_roles
from roost.scheduler.cache.equivalence_cache import EquivalenceCache
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_columns import CachedTotals, Rooms
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.score_index import ScoreIndex
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.query import candidate_query
from roost.scheduler.request.scheduling_request import (
    GroupPlacement,
    HostRequest,
    PlacementQueries,
    SchedulingRequest,
)
from support.clouds import NOW, holding, report, spec, uuid_of
from support.offering import Only, plugins

OPTIONS = SchedulerOptions()


class Place:
    """Three equal hosts."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.state = State(self.fleet, {}, 0.0)
        self.do(RegisterStandardNames())
        for number in range(3):
            self.do(CreateProvider(uuid_of(number), f"name{number}", None))
            stock = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
            self.do(SetInventories(uuid_of(number), stock, None))
        self.table = NodeTable(report(f"host{number}", uuid_of(number)) for number in range(3))

    def do(self, command) -> None:  # type: ignore[no-untyped-def]
        self.state.name(command.consumers())
        command.run(self.state)

    def request(self, of: RequestSpec | None = None) -> SchedulingRequest:
        asked = of or spec()
        query = candidate_query(asked, self.table, OPTIONS)
        return SchedulingRequest.of(HostRequest(asked, ("i",)), PlacementQueries(query), OPTIONS, NOW)


@pytest.fixture
def place() -> Place:
    return Place()


def built_in() -> EquivalenceCache:
    return EquivalenceCache(*Plugins.enabled(OPTIONS))


def test_built_in_plugins_all_say_what_they_look_at(place: Place) -> None:
    every = EquivalenceCache(*Plugins.enabled(OPTIONS))
    assert every.pool(place.fleet, place.request(), place.table) is not None


class Counting(Only):
    """A filter that notes about which hosts it is asked."""

    def __init__(self, *indexes: int) -> None:
        super().__init__(*indexes)
        self.seen: list[list[int]] = []

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        self.seen.append(hosts.index.tolist())
        return super().mask(hosts, request, progress)


def test_foreign_filter_is_asked_at_each_decision_about_hosts_still_in_play(place: Place) -> None:
    class Declares(Only):
        looks_at = Looks.REPORT
        name = "declares"

    foreign = Counting(1, 2)
    cache = EquivalenceCache(*plugins(foreign, Declares(0, 1, name="declares"), weighers=()))
    for _ in range(2):
        pool = cache.pool(place.fleet, place.request(), place.table)
        assert pool is not None
        assert [(step.name, step.left) for step in pool.ready()][-2:] == [("declares", 2), ("only", 1)]
    assert foreign.seen == [[0, 1], [0, 1]]


def test_requests_that_a_foreign_plugin_does_not_judge_cost_what_they_cost_without_it(place: Place) -> None:
    class OfSsd(Counting):
        def key(self, request: SchedulingRequest) -> Hashable | None:
            return request.spec.flavor.extra_specs.get("ssd")

    foreign = OfSsd(0)
    cache = EquivalenceCache(*plugins(foreign, weighers=()))
    with patch.object(cache_module, "Narrowed", side_effect=AssertionError):
        assert cache.pool(place.fleet, place.request(), place.table) is not None
    assert foreign.seen == []
    assert cache.pool(place.fleet, place.request(spec(extra_specs={"ssd": "yes"})), place.table) is not None
    assert foreign.seen == [[0, 1, 2]]


@pytest.mark.parametrize(
    "wish", [{"group": ServerGroup("g", "affinity")}, {"ignore_hosts": frozenset({"host0"})}]
)
def test_hosts_that_a_request_names_do_not_make_another_class(place: Place, wish: dict[str, object]) -> None:
    cache = built_in()
    with patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as made:
        for asked in (spec(), spec(**wish), spec()):
            assert cache.pool(place.fleet, place.request(asked), place.table) is not None
    assert made.call_count == 1


@pytest.mark.parametrize(
    "wish",
    [
        {"group": ServerGroup("g", "anti-affinity", ("host1",))},
        {"ignore_hosts": frozenset({"host1"})},
        {"scheduler_hints": {"different_host": (uuid_of(0xC0),)}},
    ],
)
def test_few_hosts_are_left_out_with_the_scores_of_the_class(place: Place, wish: dict[str, object]) -> None:
    place.table.update([report("host1", uuid_of(1), instances=frozenset({uuid_of(0xC0)}))])
    options = SchedulerOptions(filters=(*OPTIONS.filters, "DifferentHostFilter"))
    cache = EquivalenceCache(*Plugins.enabled(options))

    def left(of: RequestSpec) -> list[str]:
        pool = cache.pool(place.fleet, place.request(of), place.table)
        assert pool is not None
        pool.ready()
        return [place.table.hosts[pool.index(host)] for host in pool.best(3)]

    with patch.object(ScoreIndex, "narrowed", side_effect=AssertionError):
        assert left(spec()) == ["host0", "host1", "host2"]
        assert left(spec(**wish)) == ["host0", "host2"]
        assert left(spec()) == ["host0", "host1", "host2"]


def test_scores_are_of_the_request_alone_where_a_host_left_out_has_a_greatest_number(
    place: Place,
) -> None:
    more = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
    place.do(SetInventories(uuid_of(0), more, None))
    cache = built_in()
    with patch.object(ScoreIndex, "narrowed", autospec=True, side_effect=ScoreIndex.narrowed) as narrowed:
        for host in ("host1", "host2", "host0"):
            ignoring = spec(ignore_hosts=frozenset({host}))
            assert cache.pool(place.fleet, place.request(ignoring), place.table) is not None
    assert narrowed.call_count == 1


@pytest.mark.parametrize("projects", [2, plugin_roles.MOST_KEYS + 5])
def test_filter_is_asked_once_for_each_project_and_classes_stay_few(place: Place, projects: int) -> None:
    class OfProjects(Counting):
        looks_at = Looks.REPORT

        def key(self, request: SchedulingRequest) -> Hashable | None:
            return request.spec.project_id

    plugin = OfProjects(0, 2)
    cache = EquivalenceCache(*plugins(plugin, weighers=()))
    with patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as made:
        for _ in range(3):
            for project in range(projects):
                asked = spec(project_id=f"p{project}")
                pool = cache.pool(place.fleet, place.request(asked), place.table)
                assert pool is not None
                assert pool.ready()[-1].left == 2
    assert made.call_count <= plugin_roles.MOST_KEYS + 1
    # Those asked as part of a class are asked once more when their masks are cached by themselves.
    assert len(plugin.seen) <= projects + plugin_roles.MOST_KEYS


def test_trees_and_sharing_providers_are_kept_and_only_what_was_touched_is_judged_again(place: Place) -> None:
    place.do(CreateProvider(uuid_of(9), "child", uuid_of(0)))
    place.do(SetInventories(uuid_of(9), {"VCPU": Inventory(8)}, None))
    place.do(SetTraits(uuid_of(2), frozenset({SHARING_TRAIT}), None, add_custom=True))
    cache = built_in()
    with (
        patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as made,
        patch.object(cache_module, "HostIndex", wraps=HostIndex) as indexes,
    ):
        for used in range(6):
            pool = cache.pool(place.fleet, place.request(spec(2)), place.table)
            assert pool is not None
            assert pool.ready()[1].left == 3
            first = next(pool.candidates(pool.best(1)[0]))
            held = holding(uuid_of(0xC0 + used), first.allocations)
            place.do(WriteAllocations((held,)))
    assert (made.call_count, indexes.call_count) == (1, 1)


def test_provider_that_moves_to_another_tree_changes_both(place: Place) -> None:
    place.do(CreateProvider(uuid_of(9), "child", uuid_of(0)))
    place.do(SetInventories(uuid_of(9), {"VCPU": Inventory(800)}, None))
    cache = built_in()
    for parent, best in ((None, "host0"), (uuid_of(1), "host1")):
        if parent is not None:
            place.do(UpdateProvider(uuid_of(9), "child", parent))
        pool = cache.pool(place.fleet, place.request(), place.table)
        assert pool is not None
        pool.ready()
        assert place.table.hosts[pool.index(pool.best(1)[0])] == best


def test_providers_that_come_and_go_concern_only_the_hosts_that_they_are_of(place: Place) -> None:
    child, host = uuid_of(9), uuid_of(2)
    stock = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
    cache = built_in()
    place.do(CreateProvider(uuid_of(8), "other child", uuid_of(1)))
    looked_at: list[int] = []
    refresh_one = CachedTotals.refresh_one

    def note(totals: CachedTotals, at: int) -> Rooms:
        looked_at.append(int(totals.index[at]))
        return refresh_one(totals, at)

    def offered() -> tuple[int, list[int]]:
        looked_at.clear()
        pool = cache.pool(place.fleet, place.request(), place.table)
        assert pool is not None
        return pool.ready()[1].left, sorted(looked_at)

    with (
        patch.object(CachedTotals, "refresh_one", note),
        patch.object(cache_module, "HostIndex", wraps=HostIndex) as indexes,
        patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as classes,
    ):
        assert offered() == (3, [])
        place.do(CreateProvider(child, "child", uuid_of(0)))
        place.do(SetInventories(child, {"VCPU": Inventory(8)}, None))
        assert offered() == (3, [0])
        place.do(UpdateProvider(child, "child", uuid_of(1)))
        assert offered() == (3, [0, 1])
        place.do(DeleteProvider(child))
        assert offered() == (3, [1])
        place.do(DeleteProvider(host))
        assert offered() == (2, [2])
        # Its row goes to another provider, and the host comes back in another row.
        place.do(CreateProvider(uuid_of(7), "another", None))
        place.do(CreateProvider(host, "name2", None))
        place.do(SetInventories(host, stock, None))
        assert offered() == (3, [2])
    assert (indexes.call_count, classes.call_count) == (1, 1)


def test_filters_are_asked_again_only_for_hosts_that_report_something_new(place: Place) -> None:
    class Curious(Only):
        looks_at = Looks.REPORT
        seen: list[list[int]]

        def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
            self.seen.append(sorted(set(hosts.index.tolist())))
            return np.ones(len(hosts), dtype=np.bool_)

    curious = Curious()
    curious.seen = []
    cache = EquivalenceCache(*plugins(curious, weighers=()))
    for _ in range(3):
        cache.pool(place.fleet, place.request(), place.table)
    place.table.update([report("host1", uuid_of(1), last_seen=NOW)])
    cache.pool(place.fleet, place.request(), place.table)
    assert curious.seen == [[0, 1, 2]]
    place.table.update([report("host1", uuid_of(1), enabled=False)])
    cache.pool(place.fleet, place.request(), place.table)
    assert curious.seen == [[0, 1, 2], [1]]


def test_another_fleet_or_table_begins_anew(place: Place) -> None:
    cache = built_in()
    other = Place()
    with patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as made:
        for fleet, table in (
            (place.fleet, place.table),
            (other.fleet, place.table),
            (other.fleet, other.table),
        ):
            for _ in range(2):
                cache.pool(fleet, place.request(), table)
    assert made.call_count == 3


def test_the_class_not_used_for_longest_is_dropped(place: Place) -> None:
    cache = built_in()
    with (
        patch.object(cache_module, "MOST_CLASSES", 2),
        patch.object(cache_module, "EquivalenceClass", wraps=EquivalenceClass) as made,
    ):
        for vcpus in (1, 2, 1, 3, 1, 2):
            cache.pool(place.fleet, place.request(spec(vcpus)), place.table)
    # The third one drove out the second, which had not been used since the first was.
    assert made.call_count == 4
