"""A placement with one tree of providers in memory, and a driver that wants what a test says."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from roost.agent.protocol.questions import ReadTree, WriteProviders
from roost.agent.protocol.types import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    ProviderRefusal,
    ProviderState,
    ProviderWrite,
    SetAggregates,
    SetInventories,
    SetTraits,
    Written,
)
from roost.agent.provider_merge import Applied
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory
from support.stepped_contexts import SteppedContext


class ProviderWorld(SteppedContext):
    """Placement, the driver and the state of one agent. ``fill`` is what the driver does to its tree.

    ``writes`` lists what was written. ``between`` is called once, before the next writes: others at work.
    ``in_use`` holds classes that placement refuses to drop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, ProviderState] = {}
        self.kept: Applied = {}
        self.fill: Callable[[ProviderTree], None] = lambda tree: None
        self.writes: list[ProviderWrite] = []
        self.between: Callable[[], None] | None = None
        self.in_use: set[str] = set()

    def run(self, routine: Coroutine[Any, Any, Any], most: int | None = None) -> Any:
        """Run a coroutine; after ``most`` waits its process dies, and None is returned."""
        answer: Any = None
        try:
            step = routine.send(None)
            while most is None or most > 0:
                most = None if most is None else most - 1
                answer = self._answer(step.name, *step.arguments)
                step = routine.send(answer)
        except StopIteration as ended:
            return ended.value
        routine.close()
        return None

    def _answer(self, *call: Any) -> Any:
        match call:
            case "cell.ask", ReadTree():
                return tuple(self.states.values())
            case "cell.ask", WriteProviders(_, _, writes):
                if self.between is not None:
                    others, self.between = self.between, None
                    others()
                return self._write(writes)
            case "driver.fill_tree", tree, _:
                self.fill(tree)
                return tree
            case "state.keep_applied", _, applied:
                self.kept = applied
            case _:
                raise TypeError(f"unexpected call {call!r}")
        return None

    def change(self, uuid: str, **changes: Any) -> None:
        """Others change a provider."""
        before = self.states[uuid]
        self.states[uuid] = msgspec.structs.replace(before, generation=before.generation + 1, **changes)

    def add(self, name: str, parent: str, **more: Any) -> None:
        """Others add a provider, whose uuid is its name."""
        self.states[name] = ProviderState(uuid=name, name=name, parent=parent, generation=0, **more)

    def _write(self, writes: tuple[ProviderWrite, ...]) -> Written:
        raised: set[str] = set()
        for done, write in enumerate(writes):
            refusal = self._refusal(write, raised)
            if refusal is not None:
                return Written(done, refusal)
            self.writes.append(write)
            self._apply(write)
            raised.add(write.uuid)
        return Written(len(writes))

    def _refusal(self, write: ProviderWrite, raised: set[str]) -> ProviderRefusal | None:
        there = self.states.get(write.uuid)
        if isinstance(write, CreateProvider):
            if write.parent is not None and write.parent not in self.states:
                return ProviderRefusal("no such parent")
            return None
        if there is None:
            return ProviderRefusal("no such provider", conflict=True)
        if isinstance(write, DeleteProvider):
            if any(state.parent == write.uuid for state in self.states.values()):
                return ProviderRefusal("it has children")
        elif not isinstance(write, MoveProvider):
            if write.uuid not in raised and write.generation != there.generation:
                return ProviderRefusal("generation", conflict=True)
            if isinstance(write, SetInventories) and (there.inventories.keys() - write.inventories.keys()) & (
                self.in_use
            ):
                return ProviderRefusal("in use")
        return None

    def _apply(self, write: ProviderWrite) -> None:
        match write:
            case CreateProvider(uuid, name, parent):
                self.states[uuid] = ProviderState(uuid=uuid, name=name, parent=parent, generation=0)
            case MoveProvider(uuid, name, parent):
                above: str | None = parent
                while above is not None:
                    assert above != uuid, "a loop"
                    above = self.states[above].parent
                self.states[uuid] = msgspec.structs.replace(self.states[uuid], name=name, parent=parent)
            case DeleteProvider(uuid):
                del self.states[uuid]
            case SetInventories(uuid, inventories):
                self.change(uuid, inventories=inventories)
            case SetTraits(uuid, traits):
                self.change(uuid, traits=traits)
            case SetAggregates(uuid, aggregates):
                self.change(uuid, aggregates=aggregates)


def amounts(state: ProviderState) -> dict[str, int]:
    """The totals of a provider's inventories."""
    return {name: each.total for name, each in state.inventories.items()}


def inventories(**totals: int) -> dict[str, Inventory]:
    """Inventories with these totals."""
    return {name: Inventory(total) for name, total in totals.items()}
