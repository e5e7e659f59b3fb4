"""Moves that make a refused request fit: against a plain model that tries all ways, and carried out."""

from hypothesis import event, example, given

from roost.model.allocation import AFFINITY, ANTI_AFFINITY
from support.clouds import uuid_of
from support.fleets import snapshot as whole
from support.packed_hosts import (
    Guest,
    PackedFleet,
    PackedHost,
    PackedWorld,
    fewest_moves,
    fits,
    may_go,
    packed_fleets,
)

APART, TOGETHER = uuid_of(0x90), uuid_of(0x91)
GROUPS = {APART: ANTI_AFFINITY, TOGETHER: AFFINITY}


def packed(
    hosts: list[PackedHost], guests: list[tuple[Guest, int]], asked: Guest, wanted: int = 1
) -> PackedFleet:
    return PackedFleet(
        tuple(hosts),
        tuple(guest for guest, _ in guests),
        tuple(at for _, at in guests),
        GROUPS,
        asked,
        wanted,
    )


def check(fleet: PackedFleet) -> int | None:
    """What is found is right and the least, nothing is left of the search; returns the number of moves."""
    if fits(fleet, fleet.at):
        return 0
    world = PackedWorld(fleet)
    before = whole(world.fleet)
    reports = [world.table.report(index) for index in range(len(fleet.hosts))]
    claims = [*world.table.outstanding]
    found = world.search()
    assert whole(world.fleet) == before
    assert [world.table.report(index) for index in range(len(fleet.hosts))] == reports
    assert [*world.table.outstanding] == claims
    assert found.complete
    assert found == PackedWorld(fleet).search(), "equal states have equal answers"
    least = fewest_moves(fleet, 3)
    assert (len(found.moves) or None) == least, (found, least)
    at = fleet.at
    for move in found.moves:
        guest, target = int(move.instance[-4:], 16) - 0x100, int(move.target.removeprefix("host"))
        assert move.source == f"host{at[guest]}"
        assert may_go(fleet, at, guest, target), move
        at = (*at[:guest], target, *at[guest + 1 :])
        assert world.carry_out(move), move
    if found.moves:
        assert fits(fleet, at)
        assert len({move.instance for move in found.moves}) == len(found.moves)
        assert world.place()
    return least


BIG = PackedHost(4, 4)
CHAIN = packed(
    [PackedHost(4, 4), PackedHost(3, 3), PackedHost(2, 2), PackedHost(1, 1)],
    [(Guest(3, 3), 0), (Guest(2, 2), 1), (Guest(1, 1), 2)],
    Guest(4, 4),
)
"""Each instance moves to the room of the next one, the last one first."""


@given(packed_fleets())
@example(CHAIN)
@example(packed([BIG, BIG], [(Guest(2, 2), 0), (Guest(2, 2), 1)], Guest(4, 4)))
@example(packed([BIG, BIG, BIG], [(Guest(1, 1, group=APART), 0), (Guest(4, 4), 1)], Guest(1, 1, group=APART)))
@example(packed([BIG, PackedHost(6, 6)], [(Guest(2, 2, group=TOGETHER), 0)], Guest(3, 3, group=TOGETHER)))
def test_fewest_moves_are_found_wherever_there_are_some(fleet: PackedFleet) -> None:
    event(f"{check(fleet)} moves")


@given(packed_fleets(groups=False, wanted=2))
def test_moves_for_several_instances(fleet: PackedFleet) -> None:
    event(f"{check(fleet)} moves")


def test_moves_are_in_the_order_in_which_they_have_room() -> None:
    assert check(CHAIN) == 3
    found = PackedWorld(CHAIN).search()
    assert [(each.source, each.target) for each in found.moves] == [
        ("host2", "host3"),
        ("host1", "host2"),
        ("host0", "host1"),
    ]
    assert found.host == "host0"
    assert PackedWorld(CHAIN).search(most=2).moves == ()


def test_search_ends_after_its_decisions() -> None:
    world = PackedWorld(CHAIN)
    before = whole(world.fleet)
    found = world.search(decisions=5)
    assert (found.moves, found.complete) == ((), False)
    assert whole(world.fleet) == before
    assert not world.search(seconds=-1.0).complete
