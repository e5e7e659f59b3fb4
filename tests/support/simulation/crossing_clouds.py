"""Clouds of two cells, and what happens in them while an instance goes from one to the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roost.model.instance import ACTIVE
from roost.state.api_database.mappings import InstanceMapping, find_mappings
from roost.state.cell_database.deletions import give_up_on_host
from support.clouds import spec
from support.simulation.process import Process
from support.simulation.promises import promise
from support.simulation.scripted import NONE, Scripted
from support.simulation.world import Faults

ONE = "instance0"


class Watched(Scripted):
    """A cloud in which an instance that ran once is always found where its mapping says."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.watched = False
        self.network.interrupt = self._look

    def _look(self, process: Process, message: Any) -> float:
        # An agent that sends something may have begun further work that is never awaited then.
        if self.watched and not process.name.endswith("-agent"):
            mapping = self.mapping()
            there = mapping is not None and ONE in self.rows(mapping.cell)
            promise(there, f"{ONE} is not in the cell that it is mapped to: {mapping}")
        return 0.0

    def mapping(self) -> InstanceMapping | None:
        """The mapping of the instance."""
        return self.read("api", find_mappings((ONE,))).get(ONE)

    @property
    def place(self) -> tuple[str, str]:
        """The cell and the host of the instance, as its mapping leads to them."""
        mapping = self.mapping()
        return mapping.cell, self.rows(mapping.cell)[ONE].host


@contextmanager
def cloud_of_two(faults: Faults = NONE, seed: int = 1, **named: Any) -> Iterator[Watched]:
    """A cloud of two cells with a host each, and an instance, which can only move to the other cell."""
    with Watched(faults, seed, **{"cells": ("c1", "c2"), "hosts": 1} | named) as cloud:
        cloud.request(ONE, host="c1-host0")
        cloud.wait_for(ONE, ACTIVE)
        cloud.watched = True
        yield cloud


def cross(cloud: Watched, **named: Any) -> str:
    """Have the instance move to the other cell; returns the uuid of the move."""
    return cloud.migrate(ONE, across=True, **named)


def resize(cloud: Watched) -> str:
    """Have the instance get another size in the other cell, where its move waits for a word."""
    return cross(cloud, flavor=spec(2).flavor, confirms=False)


def give_up(cloud: Watched, cell: str) -> Process:
    """Give up the host of a cell, which has lost its power; returns its agent."""
    name = f"{cell}-host0"
    agent = cloud.process(f"{name}-agent")
    agent.crash()
    cloud.guests.hosts[name].die()
    gone = give_up_on_host(host=name, reason="it burnt", at=0.0, cell=cell)
    cloud.network.databases[f"cell/{cell}"].run(gone, True)
    return agent
