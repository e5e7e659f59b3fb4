"""Reports of providers merge what was applied, what the driver wants, and what others made meanwhile."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.agent.protocol.types import MoveProvider, SessionKey, SetInventories
from roost.agent.provider_report import ATTEMPTS, report_providers
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.vocabulary import DISABLED_TRAIT
from support.provider_worlds import ProviderWorld, amounts, inventories

SESSION = SessionKey("host", "nonce", 1)
ROOT, X, Y = (provider_uuid(name) for name in ("host", "x", "y"))


def report(world: ProviderWorld, most: int | None = None, **options):
    return world.run(report_providers(world, SESSION, "host", ROOT, world.kept, **options), most)


def filled(world: ProviderWorld, fill) -> None:
    world.fill = fill
    assert report(world).refusals == ()


def root_with(**totals: int):
    return lambda tree: tree.update_inventory("host", inventories(**totals))


def test_operators_ratio_and_reserve_stay_until_the_driver_tells_others() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    world.change(ROOT, inventories={"VCPU": Inventory(8, reserved=2, allocation_ratio=16.0)})
    filled(world, root_with(VCPU=8))
    filled(world, root_with(VCPU=10))
    assert world.states[ROOT].inventories == {"VCPU": Inventory(10, reserved=2, allocation_ratio=16.0)}

    def other_ratio(tree: ProviderTree) -> None:
        tree.update_inventory("host", {"VCPU": Inventory(10, allocation_ratio=4.0)})

    filled(world, other_ratio)
    assert world.states[ROOT].inventories == {"VCPU": Inventory(10, reserved=2, allocation_ratio=4.0)}


def test_total_is_the_hosts_fact_and_a_reserve_that_no_longer_fits_is_given_up() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    world.change(ROOT, inventories={"VCPU": Inventory(99, reserved=6)})
    filled(world, root_with(VCPU=4))
    assert world.states[ROOT].inventories == {"VCPU": Inventory(4)}


def test_agent_that_lost_its_state_deletes_nothing_and_keeps_the_ratio() -> None:
    world = ProviderWorld()

    def two_children(tree: ProviderTree) -> None:
        tree.update_inventory("host", inventories(VCPU=8, DISK_GB=10))
        tree.put_child("x", "host")
        tree.put_child("y", "host")

    filled(world, two_children)
    world.change(ROOT, inventories={"VCPU": Inventory(8, allocation_ratio=16.0), "DISK_GB": Inventory(10)})
    world.kept = {}

    def less(tree: ProviderTree) -> None:
        tree.update_inventory("host", inventories(VCPU=6))
        if "x" in tree:
            tree.remove("x")

    filled(world, less)
    assert set(world.states) == {ROOT, X, Y}
    assert world.states[ROOT].inventories == {
        "VCPU": Inventory(6, allocation_ratio=16.0),
        "DISK_GB": Inventory(10),
    }
    assert world.logged == ["providers that others made are kept"]


def test_agent_that_lost_its_state_gives_nothing_away_that_it_or_another_kept_back() -> None:
    world = ProviderWorld()

    def reserved(units: int):
        return lambda tree: tree.update_inventory("host", {"CUSTOM_METAL": Inventory(1, reserved=units)})

    for there, told in ((1, 0), (0, 1)):
        filled(world, reserved(there))
        world.kept = {}
        filled(world, reserved(told))
        assert world.states[ROOT].inventories == {"CUSTOM_METAL": Inventory(1, reserved=1)}
    filled(world, reserved(0))
    assert world.states[ROOT].inventories == {"CUSTOM_METAL": Inventory(1)}


def test_record_that_lacks_fields_writes_none_of_them_unless_another_changes() -> None:
    world = ProviderWorld()

    def told(**record: float):
        return lambda tree: tree.update_inventory("host", {"VCPU": record})

    filled(world, told(total=8, allocation_ratio=4.0))
    world.writes.clear()
    filled(world, told(total=8))
    assert world.writes == []
    filled(world, told(total=9))
    assert world.states[ROOT].inventories == {"VCPU": Inventory(9)}
    world.change(ROOT, inventories={"VCPU": Inventory(9, allocation_ratio=16.0)})
    filled(world, told(total=9))
    filled(world, told(total=10))
    # The operator's ratio is not the driver's to change while it tells no other.
    assert world.states[ROOT].inventories == {"VCPU": Inventory(10, allocation_ratio=16.0)}


def test_class_is_dropped_and_others_are_changed_by_one_write() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8, VGPU=2))
    world.writes.clear()
    filled(world, root_with(VCPU=4))
    assert [type(each) for each in world.writes] == [SetInventories]


def test_provider_moves_down_and_up_and_takes_what_is_below_it_along() -> None:
    world = ProviderWorld()

    def flat(tree: ProviderTree) -> None:
        tree.put_child("x", "host")
        tree.put_child("y", "host")

    def x_below_y(tree: ProviderTree) -> None:
        tree.put_child("y", "host")
        tree.put_child("x", "y")

    def y_below_x(tree: ProviderTree) -> None:
        tree.put_child("x", "host")
        tree.put_child("y", "x")

    filled(world, flat)
    world.add("agent of neutron", X)
    for fill, parents in ((x_below_y, (Y, ROOT)), (y_below_x, (ROOT, X)), (flat, (ROOT, ROOT))):
        filled(world, fill)
        assert (world.states[X].parent, world.states[Y].parent) == parents
        assert world.states["agent of neutron"].parent == X


def test_parent_that_is_moved_up_from_below_is_deleted_only_then() -> None:
    world = ProviderWorld()

    def nested(tree: ProviderTree) -> None:
        tree.put_child("x", "host")
        tree.put_child("y", "x")

    def up(tree: ProviderTree) -> None:
        tree.move("y", "host")
        tree.remove("x")

    filled(world, nested)
    filled(world, up)
    assert set(world.states) == {ROOT, Y}
    assert isinstance(world.writes[-2], MoveProvider)


def test_others_at_work_make_the_report_read_again() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    world.between = lambda: world.change(ROOT, traits=frozenset({"CUSTOM_OPERATOR"}))
    filled(world, root_with(VCPU=9))
    assert amounts(world.states[ROOT]) == {"VCPU": 9}
    assert world.states[ROOT].traits == {"CUSTOM_OPERATOR"}


def test_report_that_others_always_outrun_ends_and_says_so() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    world.fill = root_with(VCPU=9)

    def again() -> None:
        world.change(ROOT)
        world.between = again

    again()
    assert report(world).refusals == ("generation",)
    assert amounts(world.states[ROOT]) == {"VCPU": 8}
    assert ATTEMPTS == 5


def test_class_in_use_is_kept_and_keeps_nothing_else_from_being_reported() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8, VGPU=2))
    world.in_use = {"VGPU"}
    world.fill = root_with(VCPU=4)
    assert report(world).refusals == ("in use",)
    assert amounts(world.states[ROOT]) == {"VCPU": 4, "VGPU": 2}
    world.in_use = set()
    filled(world, root_with(VCPU=4))
    assert amounts(world.states[ROOT]) == {"VCPU": 4}


def test_disabled_host_has_the_trait_until_it_is_enabled() -> None:
    world = ProviderWorld()
    report(world, enabled=False)
    assert world.states[ROOT].traits == {DISABLED_TRAIT}
    report(world)
    assert world.states[ROOT].traits == frozenset()


@pytest.mark.parametrize("before", [True, False])
def test_a_host_of_which_it_is_not_known_whether_it_is_disabled_stays_as_it_is(before: bool) -> None:
    world = ProviderWorld()
    world.fill = root_with(VCPU=4)
    report(world, enabled=before)
    marked = world.states[ROOT].traits
    assert (DISABLED_TRAIT in marked) is not before
    report(world, enabled=None)
    assert world.states[ROOT].traits == marked
    report(world, enabled=not before)
    assert world.states[ROOT].traits != marked


def test_trait_that_an_operator_set_is_not_taken_away_with_the_drivers() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    world.change(ROOT, traits=frozenset({DISABLED_TRAIT}))
    report(world)
    assert world.states[ROOT].traits == {DISABLED_TRAIT}


class Wish(msgspec.Struct):
    """What a driver wants of one provider: its parent, totals and traits. None of ``parent``: no provider."""

    parent: str | None
    totals: dict[str, int]
    traits: set[str]
    aggregates: set[str]


def wishes(parents):
    return st.builds(
        Wish,
        st.sampled_from(parents),
        st.dictionaries(st.sampled_from(["VCPU", "DISK_GB"]), st.integers(1, 3)),
        st.sets(st.sampled_from(["A", "B"])),
        st.sets(st.sampled_from(["agg-a", "agg-b"])),
    )


DRIVERS = st.fixed_dictionaries(
    {"host": wishes(["-"]), "x": wishes([None, "host", "y"]), "y": wishes([None, "host"])}
).filter(lambda wish: wish["x"].parent != "y" or wish["y"].parent is not None)
OTHERS = st.lists(
    st.tuples(st.sampled_from(["trait", "aggregate", "class", "child", "delete"]), st.sampled_from("hxy")),
    max_size=3,
)
HISTORIES = st.lists(st.tuples(DRIVERS, OTHERS, st.none() | st.integers(0, 8)), min_size=1, max_size=4)
NAMES = {"h": "host", "x": "x", "y": "y"}


def fill_of(wanted: dict[str, Wish]):
    def fill(tree: ProviderTree) -> None:
        for name in ("x", "y"):
            if wanted[name].parent is None and name in tree:
                for child in ("x", "y"):
                    below = child in tree and tree.data(child).parent_uuid == tree.data(name).uuid
                    if below and wanted[child].parent is not None:
                        tree.move(child, "host")
                tree.remove(name)
        for name in ("host", "y", "x"):
            wish = wanted[name]
            if wish.parent is None:
                continue
            if name != "host":
                tree.put_child(name, wish.parent)
            tree.update_inventory(name, inventories(**wish.totals))
            tree.update_traits(name, wish.traits)
            tree.update_aggregates(name, wish.aggregates)

    return fill


def others_do(world: ProviderWorld, what: str, whom: str, added: dict[str, set[tuple[str, str]]]) -> None:
    """Others add something of their own to a provider, or delete it if it has no children."""
    uuid = provider_uuid(NAMES[whom])
    if uuid not in world.states:
        return
    state = world.states[uuid]
    if what == "trait":
        world.change(uuid, traits=state.traits | {"OTHERS"})
    elif what == "aggregate":
        world.change(uuid, aggregates=state.aggregates | {"others"})
    elif what == "class":
        world.change(uuid, inventories={**state.inventories, "OTHERS": Inventory(7)})
    elif what == "child" and f"child of {whom}" not in world.states:
        world.add(f"child of {whom}", uuid, traits=frozenset({"OTHERS"}))
    elif what == "delete" and not any(each.parent == uuid for each in world.states.values()):
        del world.states[uuid]
        for kind in added.values():
            kind.discard((uuid, "OTHERS"))
        return
    if what in added:
        added[what].add((uuid, "OTHERS"))


def check_history(history) -> None:
    world = ProviderWorld()
    added: dict[str, set[tuple[str, str]]] = {"trait": set(), "aggregate": set(), "class": set()}
    wanted = None
    for wanted, others, dies_after in history:
        for what, whom in others:
            others_do(world, what, whom, added)
        world.fill = fill_of(wanted)
        report(world, dies_after)
        for kind in added.values():
            # What others added to a provider goes with it, if its agent deletes it.
            kind -= {entry for entry in kind if entry[0] not in world.states}
    assert wanted is not None
    for _ in range(3):
        # What was refused is done once what was in its way is.
        report(world)
    world.writes.clear()
    last = report(world)
    assert all("children" in text for text in last.refusals), last.refusals
    assert world.writes == [], "a report that changes nothing"
    children = {name for name in world.states if name.startswith("child of")}
    for what, uuid in ((what, uuid) for what, kind in added.items() for uuid, _ in kind):
        if uuid in world.states:
            state = world.states[uuid]
            there = {"trait": state.traits, "aggregate": state.aggregates, "class": state.inventories}
            assert {"trait": "OTHERS", "aggregate": "others", "class": "OTHERS"}[what] in there[what]
    for name in children:
        assert world.states[name].traits == {"OTHERS"}
    for name, wish in wanted.items():
        uuid = provider_uuid(name)
        has_children = any(state.parent == uuid for state in world.states.values())
        if wish.parent is None:
            assert uuid not in world.states or has_children
            continue
        state = world.states[uuid]
        assert state.parent == (None if name == "host" else provider_uuid(wish.parent))
        assert {key: each for key, each in amounts(state).items() if key != "OTHERS"} == wish.totals
        assert state.traits - {"OTHERS"} == wish.traits
        assert state.aggregates - {"others"} == wish.aggregates


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_wishes_are_met_and_nothing_of_others_is_touched_wherever_an_agent_dies(history) -> None:
    check_history(history)


@pytest.mark.nightly
@settings(max_examples=5000, deadline=None)
@given(HISTORIES)
def test_wishes_are_met_at_length(history) -> None:
    check_history(history)


def test_inventory_write_names_the_generation_that_was_read() -> None:
    world = ProviderWorld()
    filled(world, root_with(VCPU=8))
    read = world.states[ROOT].generation
    filled(world, root_with(VCPU=9))
    [write] = [each for each in world.writes if isinstance(each, SetInventories)][1:]
    assert write.generation == read
