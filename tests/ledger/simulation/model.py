"""What the simulated commands change: consumers with one allocation each, on a few providers."""

from typing import Any

import msgspec

from roost.ledger import Command, State
from roost.model.allocation import Consumer
from roost.model.assignment import AssignedCell, Assignment
from roost.model.change import AllocationsChanged, inverse

CAPACITY = 6
"""Of each provider."""

PROVIDERS = ("p0", "p1", "p2")
ROOMY = "roomy"
"""Has room for everything."""
TOUCHY = "touchy"
"""Two changes of it in one commit break a rule of the tables, as names that are swapped in a circle do."""
POISON = "poison"
"""A change of it breaks a rule of the tables at once."""


class Refusal(Exception):
    """A command's own refusal. ``version``: of the fleet that it was judged on."""

    def __init__(self, version: int, reason: str) -> None:
        super().__init__(reason)
        self.version = version


class ModelFleet:
    """What is in use of each provider, the members of groups there, and the CPUs assigned, at a version.

    The part of `roost.fleet.Fleet` that a replica needs.
    """

    def __init__(self) -> None:
        self.version = 0
        self.used: dict[str, int] = {}
        self.members: dict[tuple[str, str], int] = {}
        self.cpus: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(PROVIDERS)

    def apply(self, change: AllocationsChanged) -> None:
        for sign, owner, allocations in ((-1, change.before, change.held), (1, change.after, change.holds)):
            if owner is not None and owner.assignment is not None:
                for cpu in owner.assignment.cpus:
                    at = (owner.assignment.node, cpu)
                    self.cpus[at] = self.cpus.get(at, 0) + sign
            for provider, resources in allocations.items():
                if owner is not None and owner.group is not None:
                    key = (owner.group, provider)
                    self.members[key] = self.members.get(key, 0) + sign
                used = self.used.get(provider, 0) + sign * resources["VCPU"]
                assert used >= 0, "more was freed than was in use"
                self.used[provider] = used

    def undo(self, changes: Any) -> None:
        for change in reversed(changes):
            self.apply(inverse(change))

    def settle(self, version: int, changes: Any, at: float) -> None:
        assert version == self.version + 1, "a commit does not follow the fleet"
        self.version = version

    def advance(self, version: int, changes: Any, at: float) -> None:
        for change in changes:
            self.apply(change)
        self.settle(version, changes, at)

    def facts(self) -> dict[str, int]:
        """What is in use, the members of each group and the CPUs on each provider, without zeros."""
        members = {f"{group} on {provider}": number for (group, provider), number in self.members.items()}
        cpus = {f"CPU {cpu} of {provider}": number for (provider, cpu), number in self.cpus.items()}
        return {name: number for name, number in (self.used | members | cpus).items() if number}


class Done(msgspec.Struct, frozen=True):
    """A command's result. ``marker``: of what it changed. ``version``: of the fleet that it was judged on."""

    marker: str
    version: int


class Claim(Command[Done], frozen=True):
    """A new consumer's claim. ``marker`` is in its change, and in no other command's.

    With a ``group`` the provider must have no member of it. With a ``cpu`` no other consumer may have it.
    """

    marker: str
    consumer: str
    provider: str
    amount: int
    group: str | None = None
    cpu: int | None = None

    def consumers(self) -> tuple[str, ...]:
        return (self.consumer,)

    @property
    def requires_new_consumers(self) -> bool:
        return True

    def run(self, state: State) -> Done:
        fleet: Any = state.fleet
        if state.held(self.consumer) is not None:
            raise Refusal(fleet.version, "the consumer exists")
        if self.provider != ROOMY and fleet.used.get(self.provider, 0) + self.amount > CAPACITY:
            raise Refusal(fleet.version, "no room")
        if self.group is not None and fleet.members.get((self.group, self.provider)):
            raise Refusal(fleet.version, "the provider has a member of the group")
        assignment = None
        if self.cpu is not None:
            if fleet.cpus.get((self.provider, self.cpu)):
                raise Refusal(fleet.version, "another consumer has the CPU")
            assignment = Assignment(self.provider, (AssignedCell(0, 0, pinned=((0, self.cpu),)),))
        owner = Consumer(self.consumer, self.marker, "user", 1, "INSTANCE", self.group, assignment)
        holds = {self.provider: {"VCPU": self.amount}}
        state.apply(AllocationsChanged(self.consumer, None, owner, {}, holds))
        return Done(self.marker, fleet.version)


class Free(Command[Done], frozen=True):
    """Frees what a consumer holds."""

    consumer: str

    def consumers(self) -> tuple[str, ...]:
        return (self.consumer,)

    def run(self, state: State) -> Done:
        fleet: Any = state.fleet
        held = state.held(self.consumer)
        if held is None:
            raise Refusal(fleet.version, "there is no such consumer")
        state.apply(AllocationsChanged(self.consumer, held.consumer, None, held.allocations, {}))
        return Done(f"free {held.consumer.project_id}", fleet.version)


def marker_of(change: AllocationsChanged) -> str:
    """What tells a change from all others."""
    if change.after is not None:
        return change.after.project_id
    assert change.before is not None
    return f"free {change.before.project_id}"
