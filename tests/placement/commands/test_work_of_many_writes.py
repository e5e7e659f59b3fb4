"""The work of one command grows with the number of its writes, not with the square of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from roost.fleet import Fleet
from roost.ledger.state import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.allocation import GroupClaim
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from support.placement_api import uuid_of


class Counted(list[ConsumerWrite]):
    """Writes that count how often somebody goes through all of them."""

    times = 0

    def __iter__(self) -> Iterator[ConsumerWrite]:
        self.times += 1
        return super().__iter__()


class Ledger:
    """A state with hosts, without a database."""

    def __init__(self, hosts: int) -> None:
        self.hosts = [uuid_of(f"host {number}") for number in range(hosts)]
        self.state = State(Fleet(), {}, 0.0)
        self.run(RegisterStandardNames())
        for host in self.hosts:
            self.run(CreateProvider(host, host))
            self.run(SetInventories(host, {"VCPU": Inventory(8)}))

    def run(self, command: Any) -> None:
        self.state.name(command.consumers())
        command.run(self.state)

    def write(self, writes: list[ConsumerWrite]) -> int:
        """Write; return how often the writes were gone through."""
        counted = Counted(writes)
        self.state.name([each.consumer for each in writes])
        write_allocations(self.state, counted)
        return counted.times


def claim(consumer: str, host: str | None, amount: int = 4, **more: Any) -> ConsumerWrite:
    held = {} if host is None else {host: {"VCPU": amount}}
    return ConsumerWrite(consumer=consumer, allocations=held, project_id="p", user_id="u", **more)


def new_claims(count: int) -> int:
    ledger = Ledger(count)
    return ledger.write([claim(f"c{n}", host) for n, host in enumerate(ledger.hosts)])


def members_that_move(count: int) -> int:
    """Each member of a group hands its claim over to a migration, and takes another host."""
    ledger = Ledger(2 * count)
    group = GroupClaim("group", "anti-affinity")
    members = [claim(f"c{n}", ledger.hosts[n], group=group) for n in range(count)]
    ledger.write(members)
    moved = [claim(f"c{n}", ledger.hosts[count + n]) for n in range(count)]
    migrations = [claim(f"m{n}", ledger.hosts[n]) for n in range(count)]
    times = ledger.write([*migrations, *moved])
    holder = ledger.state.held("m0")
    assert holder is not None
    assert holder.consumer.group == "group"
    return times


def claims_beyond_the_capacity(count: int) -> int:
    """The hosts have become smaller than what is claimed there, which is written once more."""
    ledger = Ledger(count)
    claims = [claim(f"c{n}", host) for n, host in enumerate(ledger.hosts)]
    ledger.write(claims)
    for host in ledger.hosts:
        ledger.run(SetInventories(host, {"VCPU": Inventory(2)}))
    return ledger.write(claims)


@pytest.mark.parametrize("work", [new_claims, members_that_move, claims_beyond_the_capacity])
def test_the_writes_are_gone_through_as_often_for_many_as_for_few(work) -> None:
    assert work(50) == work(5)
