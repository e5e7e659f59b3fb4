"""Conductors race, lose answers and come late: the claim of an instance is where its row says.

The row follows the rules of a cell: it changes at the attempt that was read only. No database, no clock.
"""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.ledger import Command, Held, State
from roost.model.change import ResourceClassChanged
from roost.model.inventory import Inventory
from roost.model.spec import Selection
from roost.placement.commands.allocations import FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.errors import PlacementError
from roost.scheduler.errors import NothingClaimed
from roost.scheduler.gateways.local import Decide, UseAlternate
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest, Replacement, ReplacementRequest
from support.clouds import NOW, holding, report, spec
from support.offering import named_filters, scheduling_request

HOSTS = 4
VCPUS = 2
ONE = "i0"
ASSIGNED, FAILED, ABANDONED, ERROR = "assigned", "failed", "abandoned", "error"


@dataclass(frozen=True)
class Row:
    """The instance as its cell has it."""

    state: str
    attempt: int
    selection: Selection
    alternates: tuple[Selection, ...]


@dataclass
class World:
    """Hosts of 2 vCPUs, one instance of 1, and what conductors have read and been answered."""

    state: State = field(default_factory=lambda: State(Fleet(), {}, 0.0))
    table: NodeTable = field(default_factory=NodeTable)
    late: list[tuple[Row, Replacement]] = field(default_factory=list)
    generations: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pools = HostPools(self.table, plugins=Plugins(named_filters("ComputeFilter"), ()))
        self.query = scheduling_request(of=spec(1))
        self.state.apply(ResourceClassChanged("VCPU", None, 0))
        for number in range(HOSTS):
            self.run(CreateProvider(f"node{number}", f"host{number}", None))
            self.run(SetInventories(f"node{number}", {"VCPU": Inventory(VCPUS)}, None))
            self.table.update([report(f"host{number}", f"node{number}")])
        asked = scheduling_request(of=spec(1), num_alternates=HOSTS - 1)
        [placed] = self.run(Decide(asked, self.pools)).outcome.destinations
        self.row = Row(ASSIGNED, 1, placed.selected, placed.alternates)

    def run(self, command: Command) -> object:
        mark = len(self.state.changes)
        self.state.name(command.consumers())
        try:
            return command.run(self.state)
        except Exception:
            self.state.take_back(mark)
            raise

    @property
    def held(self) -> Held | None:
        self.state.name([ONE])
        return self.state.held(ONE)

    # What may happen

    def fail(self, number: int) -> None:
        """The build of the present attempt fails."""
        if self.row.state == ASSIGNED:
            self.row = Row(FAILED, self.row.attempt, self.row.selection, self.row.alternates)

    def toggle(self, number: int) -> None:
        """A host is disabled, or enabled again."""
        old = self.table.report(number)
        self.table.update([msgspec.structs.replace(old, enabled=not old.enabled)])

    def hide(self, number: int) -> None:
        """A host stops reporting, or is seen again."""
        old = self.table.report(number)
        seen = NOW - 100.0 if old.last_seen > NOW - 50.0 else NOW
        self.table.update([msgspec.structs.replace(old, last_seen=seen)])

    def fill(self, number: int) -> None:
        """Others take a host, as far as there is room."""
        for amount in (2, 1):
            try:
                self.run(WriteAllocations((holding(f"other{number}", {f"node{number}": {"VCPU": amount}}),)))
            except PlacementError:
                continue
            return

    def leave(self, number: int) -> None:
        """Others leave a host."""
        self.run(FreeConsumers((f"other{number}",)))

    def use(self, number: int) -> None:
        """A conductor has an alternate used. By ``number`` the answer comes at once, late, or never."""
        row = self.row
        if row.state != FAILED:
            return
        asked = AlternateRequest(self.query.spec, self.query.instances[0], row.selection, row.alternates)
        request = ReplacementRequest.of(asked, self.query)
        try:
            found = self.run(UseAlternate(request, self.pools))
        except NothingClaimed:
            raise AssertionError("a failed instance held nothing") from None
        assert isinstance(found, Replacement)
        if number == 0:
            self.deliver(row, found)
        elif number < 3:
            self.late.append((row, found))

    def arrive(self, number: int) -> None:
        """A late answer reaches its conductor."""
        if self.late:
            self.deliver(*self.late.pop(number % len(self.late)))

    def deliver(self, row: Row, found: Replacement) -> None:
        """The cell takes the result, if the instance is as the conductor had read it."""
        if (self.row.state, self.row.attempt) != (FAILED, row.attempt):
            return
        if found.selected is None:
            self.row = Row(ABANDONED, row.attempt, self.row.selection, ())
        else:
            self.row = Row(ASSIGNED, row.attempt + 1, found.selected, found.alternates)

    def free(self, number: int) -> None:
        """The claim of an abandoned instance is freed."""
        if self.row.state == ABANDONED:
            self.run(FreeConsumers((ONE,)))
            self.row = Row(ERROR, self.row.attempt, self.row.selection, ())

    # What must be true

    def check(self) -> None:
        held, row = self.held, self.row
        if row.state == ERROR:
            assert held is None, "an instance in error holds something"
            return
        assert held is not None, "the consumer was emptied before the end of its instance"
        self.generations.append(held.consumer.generation)
        assert self.generations == sorted(self.generations), "the consumer began again"
        if row.state == ASSIGNED:
            assert held.allocations == row.selection.allocations, "the claim is on another host than the row"
        used = self.state.fleet.inventory_columns("VCPU")
        assert (used.used[: used.n] <= VCPUS).all(), "a host is oversold"


EVENTS = (
    "fail",
    "use",
    "use",
    "use",
    "arrive",
    "arrive",
    "toggle",
    "toggle",
    "hide",
    "fill",
    "leave",
    "free",
)
HISTORIES = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, HOSTS - 1)), max_size=30)


def live(history: list[tuple[str, int]]) -> None:
    world = World()
    world.fail(0)
    world.check()
    for event, number in history:
        getattr(world, event)(number)
        world.check()


@settings(max_examples=25, deadline=None)
@example([("use", 1), ("toggle", 1), ("use", 3), ("arrive", 0)])
@given(HISTORIES)
def test_claim_is_where_the_row_says_whatever_happens(history: list[tuple[str, int]]) -> None:
    live(history)


@pytest.mark.nightly
@settings(max_examples=5_000, deadline=None)
@given(HISTORIES)
def test_claim_is_where_the_row_says_in_thousands_of_histories(history: list[tuple[str, int]]) -> None:
    live(history)
