"""State machines: the logic of conductors and agents as coroutines, which do no I/O.

steps        the steps that a machine may await, each with the type of its answer
performer    the asyncio shell: performs steps on databases and services
wakes        topics that machines wait for
endless      machines that are restarted after an error

A *machine* is a coroutine that awaits nothing but *steps*. It has no clock, no randomness and no I/O of its
own, so the same code runs under two shells: `Performer` in the processes, and a simulator in the tests, which
draws delays, losses, crashes and outages from a seed.

    async def carry(request: str) -> None:
        row = await Read("api", RequestById(request))
        chosen = await Ask("scheduler", SelectDestinations(row.spec))
        await Write("cell/c1", InsertInstance(chosen))

A machine may be closed at any step, as its process may die there, so it does no step in a ``finally``. The
next process finds the rest of the work in the databases.
"""

from roost.machine.endless import lasting
from roost.machine.performer import Performer, Service, Transactor, UnknownService
from roost.machine.steps import (
    Ask,
    Await,
    Call,
    Clock,
    Draw,
    Increment,
    Log,
    Machine,
    MachineStep,
    Monotonic,
    Read,
    Record,
    Sleep,
    Start,
    Together,
    Wake,
    Within,
    Work,
    Write,
)
from roost.machine.wakes import Wakes

__all__ = [
    "Ask",
    "Await",
    "Call",
    "Clock",
    "Draw",
    "Increment",
    "Log",
    "Machine",
    "MachineStep",
    "Monotonic",
    "Performer",
    "Read",
    "Record",
    "Service",
    "Sleep",
    "Start",
    "Together",
    "Transactor",
    "UnknownService",
    "Wake",
    "Wakes",
    "Within",
    "Work",
    "Write",
    "lasting",
]
