"""The hosts of the simulated world: their guests, which outlive agents, and what a driver does there."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from roost.agent.driver_calls import ConsumerRecords
from roost.agent.errors import BuildFailed, CannotStopGuests, ReshapeNeeded
from roost.agent.neighbours.ports import is_released, mark_of
from roost.agent.persistent_state import MemoryState
from roost.agent.protocol.types import PortsReleased
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory
from roost.model.node import YES
from support.simulation.network import BrokenPromise

FOREIGN = "foreign-guest"
"""A guest that others have made: nobody of this world may touch it."""


VCPUS = 3
"""Those of a host, if a world says no other number."""


class Guests:
    """The guests of all hosts. ``builds``: how often each attempt was started. ``lost``: what vanished.

    ``ports``: the port of each instance, as the network service has it: its host and the mark of an attempt.
    ``released``: the instances whose ports were released as they end. ``have_ports``: False: no instance has
    one, so that none keeps a late attempt away.
    """

    def __init__(self, later: Callable[..., None]) -> None:
        self.later = later
        """Does something after some seconds, whichever agents live."""
        self.hosts: dict[str, Host] = {}
        self.builds: Counter[tuple[str, int]] = Counter()
        self.lost: set[str] = set()
        self.ports: dict[str, tuple[str, int]] = {}
        self.migrations = 0
        self.released: set[str] = set()
        self.have_ports = True
        self.counts_room = False
        """Whether a host must not run more guests than it has CPUs, as each has one."""
        self.disks: set[str] = set()
        """The instances that have a disk in the store of all hosts."""

    @property
    def started(self) -> set[str]:
        """The instances that were started."""
        return {instance for instance, _ in self.builds}

    def running(self, instance: str) -> list[tuple[str, int]]:
        """Where an instance runs: host and attempt of each of its guests."""
        return [(host.name, host.guests[instance]) for host in self.hosts.values() if instance in host.guests]


class Migration(NamedTuple):
    """A guest is on its way to a host, where its attempt is another one."""

    host: str
    attempt: int
    number: int


class Host:
    """One host. ``guests``: instance -> attempt, of those that run; ``prepared``: of those that do not yet,
    ``stopped``: of those that were stopped, ``off``: of those that ran when the host died,
    ``parked``: of those that are kept beside one of another size.
    ``unstoppable``: the share of stops that fail. ``cannot_stop``: its driver does not stop guests at all.
    ``incoming``: attempts for whose guests the host is ready,
    and ``migrations``: guests that are on their way to others. ``breaking``: the share of migrations in whose
    middle the guest is lost. ``migration_seconds``: what each takes, drawn if 0.

    ``state``: the state directory of its agent. ``has_cells``: its CPUs are those of a provider below the
    root. ``plugged``: the suffix of the provider that its second device is below; empty: the root.
    ``seconds``: those that each build takes, drawn if 0. ``fails``: attempts that fail here, by instance,
    ``fails_late``: those that fail when they are started. ``mappings``: the providers of the request groups
    of each attempt that was prepared. ``failing``: the share of builds that fail, a tenth of them for a
    cause that no other host cures.
    """

    def __init__(
        self,
        name: str,
        node: str,
        cell: str,
        guests: Guests,
        random: Random,
        note: Callable[..., None],
        vcpus: int = VCPUS,
    ) -> None:
        self.name = name
        self.node = node
        self.cell = cell
        self.vcpus = vcpus
        self.guests: dict[str, int] = {FOREIGN: 1}
        self.prepared: dict[str, int] = {}
        self.stopped: dict[str, int] = {}
        self.off: dict[str, int] = {}
        self.parked: dict[str, int] = {}
        self.unstoppable = 0.0
        self.incoming: dict[str, int] = {}
        self.migrations: dict[str, Migration] = {}
        self.breaking = 0.0
        self.migration_seconds = 0.0
        self.hesitates = 0.0
        """Seconds between the order to have a guest go and its migration, drawn if 0."""
        self.has_tokens = True
        """Whether only a guest comes here for whose attempt the host is ready."""
        self.cannot_stop = False
        self.store: str | None = YES
        """The store of disks that its driver tells; None: it keeps none."""
        self.keeps_shelved = True
        """Whether disks stay in the store when guests are destroyed."""
        self.failing = 0.0
        self.fails: set[tuple[str, int]] = set()
        self.fails_late: set[tuple[str, int]] = set()
        self.mappings: dict[tuple[str, int], dict[str, list[str]]] = {}
        self.plugged = ""
        self.has_cells = False
        self.seconds = 0.0
        self.state = MemoryState()
        self._all = guests
        self._random = random
        self._note = note
        guests.hosts[name] = self

    @property
    def provider(self) -> str:
        """The name of the provider that has the CPUs."""
        return f"{self.name}-a" if self.has_cells else self.name

    def fill(self, tree: ProviderTree, node: str, allocations: ConsumerRecords | None = None) -> None:
        """Say what the host has: its CPUs, and two devices of which the second may be below the first.

        Raises `ReshapeNeeded`.
        """
        a = tree.put_child(f"{node}-a", node)
        now, before = (a, self.node) if self.has_cells else (self.node, a)
        if tree.has_inventory(before):
            if allocations is None:
                raise ReshapeNeeded(f"the CPUs of {node} are another provider's")
            for record in allocations.values():
                if before in record["allocations"]:
                    record["allocations"][now] = record["allocations"].pop(before)
        tree.update_inventory(now, {"VCPU": Inventory(self.vcpus)})
        tree.update_inventory(before, {})
        tree.put_child(f"{node}-b", f"{node}-{self.plugged}" if self.plugged else node)
        tree.update_inventory(f"{node}-b", {"CUSTOM_GPU": Inventory(1)})
        tree.update_traits(f"{node}-b", ["CUSTOM_DEVICE"])

    def bind(self, instance: str, attempt: int, over: int | None = None, *, moves: bool = False) -> None:
        """Bind the port of a guest to the host. Raises `BuildFailed` if it is a later attempt's.

        ``moves``: the guest ran elsewhere, and its port has an address that it keeps.
        """
        if not self._all.have_ports:
            return
        if moves and instance not in self._all.ports.keys() | self._all.released:
            raise BrokenPromise(f"{instance} moves, and its port has been deleted")
        at, mark = self._all.ports.get(instance, ("", 0))
        new = mark_of(mark, at, self.name, attempt, over)
        if new is None:
            raise BuildFailed(f"a later attempt has the port on {at}")
        self._all.ports[instance] = self.name, new

    def release(self, instance: str, ports: PortsReleased) -> None:
        """Release the port of a guest that ends."""
        if ports in ("all", "every"):
            self._all.released.add(instance)
        at, mark = self._all.ports.get(instance, ("", 0))
        if ports == "unbound" and at == self.name:
            self._all.ports[instance] = "", mark
        elif ports != "unbound" and is_released(ports, at, self.name):
            self._all.ports.pop(instance, None)

    def prepare(self, instance: str, attempt: int) -> None:
        """Make all of a guest except its start. Raises `BuildFailed`."""
        drawn = self._random.random()
        if (instance, attempt) in self.fails:
            raise BuildFailed("No more IP addresses")
        if drawn < self.failing:
            self._note(self.name, "fails to build", instance, attempt)
            curable = drawn > self.failing * 0.1
            raise BuildFailed("the disk is gone" if curable else "no such image", "Fault", curable)
        # What is off of this attempt, since its host died, or of an earlier one, is replaced.
        self.stopped.pop(instance, None)
        self.off.pop(instance, None)
        self.prepared[instance] = attempt

    def find_disk(self, instance: str) -> None:
        """Find the disk of an instance that has one. Raises: `BrokenPromise`."""
        if instance not in self._all.disks:
            raise BrokenPromise(f"the disk of {instance} is gone")

    def remove_disk(self, instance: str) -> None:
        """Remove the disk of an instance that has ended."""
        self._all.disks.discard(instance)

    def start(self, instance: str, attempt: int) -> None:
        """Start a guest that is prepared."""
        elsewhere = self._all.running(instance)
        if elsewhere and elsewhere != [(self.name, attempt)]:
            raise BrokenPromise(
                f"attempt {attempt} of {instance} is started on {self.name} while it runs as {elsewhere}"
            )
        if (instance, attempt) in self.fails_late:
            raise BuildFailed("the hypervisor does not start it")
        if self._all.counts_room and len({*self.guests, instance}) > self.vcpus:
            raise BrokenPromise(f"{self.name} has {self.vcpus} CPUs and runs {instance} beside {self.guests}")
        self.prepared.pop(instance, None)
        self._note(self.name, "runs", instance, f"attempt {attempt}")
        self.guests[instance] = attempt
        self._all.disks.add(instance)
        self._all.builds[instance, attempt] += 1

    def destroy(self, instance: str) -> None:
        """Remove all that is here of an instance."""
        if instance == FOREIGN:
            raise BrokenPromise(f"the agent of {self.name} destroys a guest of others")
        self.migrations.pop(instance, None)  # a guest that is gone goes nowhere
        for there in (self.prepared, self.incoming, self.guests, self.stopped, self.off, self.parked):
            if instance in there:
                self._note(self.name, "destroys", instance, f"attempt {there[instance]}")
                del there[instance]

    def prepare_beside(self, instance: str, attempt: int, beside: int) -> None:
        """Make a guest beside the stopped one of another attempt. Raises `BuildFailed`."""
        if self.parked.get(instance) != beside:
            there = self.off if instance in self.off else self.stopped
            if there.get(instance) != beside:
                raise BuildFailed(f"there is no stopped guest of attempt {beside}")
            self.parked[instance] = there.pop(instance)
        self.prepare(instance, attempt)

    def destroy_attempt(self, instance: str, attempt: int) -> None:
        """Remove all that is here of an attempt."""
        if self.parked.get(instance) == attempt:
            self._note(self.name, "destroys", instance, f"attempt {attempt}")
            del self.parked[instance]
            return
        if self.guests.get(instance) == attempt:
            self.migrations.pop(instance, None)
        for there in (self.prepared, self.guests, self.stopped, self.off):
            if there.get(instance) == attempt:
                self._note(self.name, "destroys", instance, f"attempt {attempt}")
                del there[instance]
        if instance in self.parked and instance not in self.guests:
            self.stopped[instance] = self.parked.pop(instance)

    def stop(self, instance: str) -> None:
        """Stop a guest; what it is made of stays. Raises `BuildFailed`, `CannotStopGuests`."""
        if self.cannot_stop:
            raise CannotStopGuests("the driver cannot stop guests")
        for there in (self.off, self.prepared):
            if instance in there:
                self.stopped[instance] = there.pop(instance)
        if instance in self.stopped:
            return
        if instance not in self.guests:
            raise BuildFailed("there is no such guest")
        self._may_fail("stop", instance)
        self.migrations.pop(instance, None)
        self.stopped[instance] = self.guests.pop(instance)
        self._note(self.name, "stops", instance, f"attempt {self.stopped[instance]}")

    def start_again(self, instance: str, attempt: int) -> None:
        """Start a guest that was stopped. Raises `BuildFailed`."""
        if self.guests.get(instance) == attempt:
            return
        there = self.off if instance in self.off else self.stopped
        if self.parked.get(instance) == attempt:
            if instance in there:
                there[instance], self.parked[instance] = self.parked[instance], there[instance]
            else:
                self.prepared.pop(instance, None)
                there[instance] = self.parked.pop(instance)
        if there.get(instance) != attempt:
            raise BuildFailed("there is no such guest")
        self._may_fail("start", instance)
        self.start(instance, there.pop(instance))

    def receive(self, instance: str, attempt: int) -> None:
        """Be ready for a guest that comes from another host. Raises `BuildFailed`."""
        if self.guests.get(instance) != attempt:
            self.prepare(instance, attempt)
            self.incoming[instance] = self.prepared.pop(instance)

    def migrate(self, instance: str, host: str, attempt: int) -> None:
        """Have a guest go to another host, by the hypervisors alone. One that is on its way goes on."""
        if instance in self.migrations or instance not in self.guests:
            return
        self._all.migrations += 1
        going = self.migrations[instance] = Migration(host, attempt, self._all.migrations)
        seconds = self.migration_seconds or self._random.choice((0.1, 2.0, 10.0, 40.0))
        self._note(self.name, "sends", instance, f"to {host} as attempt {attempt}")
        self._all.later(seconds, self._hand_over, instance, going)

    def _hand_over(self, instance: str, going: Migration) -> None:
        if self.migrations.get(instance) != going:
            return
        del self.migrations[instance]
        other = self._all.hosts[going.host]
        if other.has_tokens and other.incoming.get(instance) != going.attempt:
            self._note(self.name, "keeps", instance, "as the other host is not ready")
            return
        other.incoming.pop(instance, None)
        self.stopped[instance] = self.guests.pop(instance)
        if self._random.random() < self.breaking:
            self._note(self.name, "loses", instance, "on its way")
            return
        other.start(instance, going.attempt)
        self._all.ports[instance] = other.name, going.attempt

    def _may_fail(self, what: str, instance: str) -> None:
        if self._random.random() < self.unstoppable:
            self._note(self.name, f"fails to {what}", instance)
            raise BuildFailed(f"the hypervisor does not {what} it")

    def die(self) -> None:
        """The machine loses its power: its guests are off when it is back."""
        self._note(self.name, "dies")
        self.state.answered = None
        self.off.update((uuid, attempt) for uuid, attempt in self.guests.items() if uuid != FOREIGN)
        self.guests = {FOREIGN: self.guests[FOREIGN]}
        self.prepared.clear()
        self.incoming.clear()
        self.migrations.clear()

    def wake(self, instance: str) -> None:
        """A stopped guest runs again, as when somebody starts it by hand."""
        self._note(self.name, "wakes", instance)
        self.start(instance, self.stopped.pop(instance))

    def lose(self, instance: str) -> None:
        """A guest vanishes, as when somebody removes it by hand."""
        self._note(self.name, "loses", instance)
        self._all.lost.add(instance)
        del self.guests[instance]
