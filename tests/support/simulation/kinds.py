"""The kinds of schedules that are drawn: the weather of messages, the events, and the acts of users."""

from typing import NamedTuple

from support.simulation.weather import CALM, Weather

STORM = Weather(slow=0.05, refused=0.03, lost=0.04, late=0.02, doubled=0.04, crashes=0.004)
"""Much that may happen to messages."""

PAUSES = STORM._replace(pauses=0.04)
"""Processes are stopped just before they write, often past their leases."""

WIND = STORM._replace(crashes=0.0, pauses=0.0)
"""Messages are lost and late, and processes live long enough to see others stand still."""

ALL = (
    "crash",
    "crash_agent",
    "stop",
    "stop_agent",
    "cut_off",
    "cut_off_agent",
    "database_away",
    "clock",
    "vanish",
    "replug",
    "reshape",
)
"""The events of one cell."""


class Kind(NamedTuple):
    """What may happen in a schedule. ``events``: names of methods of `World`, and how many there are.

    ``failing``: the share of builds that fail. ``build_seconds``: their time limit. ``seconds``: the length
    of the storm. ``deletes``: the share of instances that are deleted in it. ``fails_over``: databases go
    back to an earlier state, and what they lose may have been promised: only harm is checked for then.
    ``moves``: the share of instances that an operator moves, ``live`` that of those moves in which the guest
    runs on, ``powers``: that a user stops and starts, ``shelves``: that a user
    shelves and unshelves. ``unstoppable``: the share of guests that cannot be
    stopped, or started again, ``breaking`` that of those which are lost on their way.
    ``across``: the share of these moves that may leave their cell.
    """

    weather: Weather = CALM
    events: tuple[str, ...] = ()
    number: int = 0
    failing: float = 0.0
    build_seconds: float = 30.0
    seconds: float = 25.0
    deletes: float = 0.4
    moves: float = 0.0
    powers: float = 0.0
    shelves: float = 0.0
    across: float = 0.0
    live: float = 0.0
    unstoppable: float = 0.0
    breaking: float = 0.0
    fails_over: bool = False


CELL_KINDS = {
    "calm": Kind(),
    "failing": Kind(failing=0.5),
    "weather": Kind(STORM, failing=0.3),
    "slow": Kind(STORM, ("stop_agent",), 2, failing=0.2, build_seconds=4.0),
    "pauses": Kind(PAUSES, failing=0.4, build_seconds=8.0, seconds=30.0),
    "crashes": Kind(STORM, ("crash", "crash_agent"), 5, failing=0.3),
    "stops": Kind(STORM, ("stop", "stop_agent"), 4, failing=0.3, seconds=40.0),
    "cut off": Kind(STORM, ("cut_off", "cut_off_agent"), 4, failing=0.3, seconds=40.0),
    "outage": Kind(STORM, ("database_away",), 2, failing=0.3, seconds=40.0),
    "failover": Kind(STORM, ("fail_over", "crash"), 3, failing=0.3, seconds=40.0, fails_over=True),
    "reshapes": Kind(STORM, ("reshape",), 6, failing=0.3, seconds=40.0),
    "reshapes and crashes": Kind(
        STORM._replace(pauses=0.02), ("reshape", "reshape", "crash", "cut_off"), 8, failing=0.4, seconds=45.0
    ),
    "everything": Kind(STORM, ALL, 6, failing=0.3, seconds=45.0),
}
"""The kinds of schedules of `support.simulation.cell_world`."""

CLOUD_KINDS = {
    "pauses": Kind(PAUSES, failing=0.2, seconds=30.0),
    "calm": Kind(),
    "weather": Kind(STORM, failing=0.3),
    "crashes": Kind(STORM, ("crash_super", "crash_super", "crash", "crash_agent"), 5, failing=0.2),
    "stops": Kind(STORM, ("stop_super", "stop_super", "stop", "stop_agent"), 4, failing=0.2, seconds=40.0),
    "cut off": Kind(STORM, ("cut_off_super", "cut_off", "cut_off_agent"), 4, failing=0.2, seconds=40.0),
    "outage": Kind(STORM, ("database_away",), 3, failing=0.2, seconds=40.0),
    "failover": Kind(
        STORM, ("fail_over", "crash_super", "crash"), 4, failing=0.2, seconds=40.0, fails_over=True
    ),
    "reshapes": Kind(
        STORM, ("reshape", "reshape", "reshape", "crash_super", "crash"), 6, failing=0.3, seconds=45.0
    ),
    "moves": Kind(STORM, failing=0.2, deletes=0.2, moves=1.0, unstoppable=0.1, seconds=40.0),
    "moves under crashes": Kind(
        PAUSES,
        ("crash_super", "crash", "crash", "crash_agent", "stop", "stop_agent", "cut_off", "cut_off_agent"),
        8,
        failing=0.2,
        seconds=50.0,
        deletes=0.3,
        moves=1.0,
        unstoppable=0.1,
    ),
    "moves across cells": Kind(STORM, failing=0.2, deletes=0.2, moves=1.0, across=0.9, seconds=50.0),
    "crossings under crashes": Kind(
        PAUSES,
        (
            *("crash_super", "crash_super", "stop_super", "cut_off_super"),
            *("crash", "crash_agent", "stop", "stop_agent", "cut_off", "cut_off_agent", "database_away"),
        ),
        9,
        failing=0.2,
        seconds=60.0,
        deletes=0.3,
        moves=1.0,
        across=0.9,
        unstoppable=0.1,
    ),
    "deaths": Kind(
        PAUSES, ("die", "die", "crash", "crash_super", "stop"), 6, failing=0.2, seconds=160.0, moves=0.3
    ),
    "power": Kind(
        STORM,
        ("wake", "wake"),
        4,
        failing=0.1,
        deletes=0.2,
        powers=1.0,
        moves=0.5,
        unstoppable=0.1,
        seconds=40.0,
    ),
    "power under crashes": Kind(
        PAUSES,
        ("crash_super", "crash", "crash_agent", "stop", "stop_agent", "cut_off_agent", "wake", "die"),
        8,
        failing=0.1,
        seconds=60.0,
        deletes=0.2,
        powers=1.0,
        moves=0.5,
        unstoppable=0.1,
    ),
    "shelves": Kind(
        STORM, failing=0.2, deletes=0.3, shelves=1.0, powers=0.3, moves=0.3, unstoppable=0.1, seconds=50.0
    ),
    "shelves under crashes": Kind(
        PAUSES,
        ("crash_super", "crash", "crash", "crash_agent", "stop", "stop", "stop_agent", "cut_off_agent"),
        9,
        failing=0.2,
        deletes=0.3,
        shelves=1.0,
        moves=0.3,
        seconds=60.0,
    ),
    "live moves": Kind(
        STORM, failing=0.2, deletes=0.2, moves=1.0, live=0.9, breaking=0.1, unstoppable=0.1, seconds=50.0
    ),
    "live moves under crashes": Kind(
        PAUSES,
        ("crash_super", "crash", "crash", "crash_agent", "stop", "stop_agent", "cut_off", "cut_off_agent"),
        8,
        failing=0.1,
        seconds=60.0,
        deletes=0.3,
        moves=1.0,
        live=0.8,
        breaking=0.1,
        unstoppable=0.1,
    ),
    "deaths under live moves": Kind(
        PAUSES,
        ("die", "die", "crash", "crash_super", "crash_agent"),
        5,
        failing=0.1,
        seconds=160.0,
        moves=1.0,
        live=0.9,
        breaking=0.1,
    ),
    "fences": Kind(
        WIND,
        (
            *("isolate_agent", "isolate_agent", "isolate_agent"),
            *("freeze_agent", "freeze_agent", "kill_agent"),
            *("crash", "stop", "crash_super", "database_away"),
        ),
        9,
        failing=0.1,
        deletes=0.2,
        powers=0.3,
        moves=0.3,
        unstoppable=0.1,
        seconds=450.0,
    ),
    "fences under live moves": Kind(
        WIND,
        ("isolate_agent", "isolate_agent", "freeze_agent", "kill_agent", "crash"),
        6,
        failing=0.1,
        deletes=0.1,
        moves=1.0,
        live=0.9,
        breaking=0.1,
        seconds=450.0,
    ),
    "everything": Kind(
        STORM, (*ALL, "crash_super", "stop_super", "cut_off_super"), 8, failing=0.2, seconds=45.0
    ),
}
"""The kinds of schedules of `support.simulation.cloud_world`."""
