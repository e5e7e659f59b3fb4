"""The promises about one instance, move or host of a simulated world, when nothing is under way any more.

`support.simulation.world.World.check` asks for all of them. Each raises `BrokenPromise`.
"""

from typing import TYPE_CHECKING

from roost.conductor.history.timeline import actions_of
from roost.model.instance import (
    ACTIVE,
    ASSIGNED,
    ERROR,
    IN_PLACE,
    LOST,
    MOVED,
    MOVING,
    OF_MOVES,
    REBUILDS,
    RESHAPED,
    SHELVED,
    STOPPED,
    Instance,
)
from roost.model.move import Move
from roost.model.move_states import ENDED, SWITCHED
from roost.state.api_database.past import find_known
from roost.state.cell_database.history import StoredHistory, read_history
from support.simulation import placement
from support.simulation.hosts import Host
from support.simulation.network import BrokenPromise

if TYPE_CHECKING:
    from support.simulation.cloud_world import CloudWorld
    from support.simulation.world import World

_BEGIN = (ASSIGNED, MOVING, *REBUILDS)
"""Transitions with which an attempt begins."""


def promise(kept: bool, text: str) -> None:
    """Raises: `BrokenPromise`."""
    if not kept:
        raise BrokenPromise(text)


def check_row(world: "World", row: Instance) -> None:
    """Check that an instance has come to an end, and that placement and its host know the same of it."""
    running = world.guests.running(row.uuid)
    held = world.placement.held(row.consumer)
    if row.state == SHELVED:
        promise(not running, f"{row.uuid} is shelved and runs: {running}")
        promise(held is None, f"{row.uuid} is shelved and holds {held}")
        promise((row.host, row.node, row.selection) == (None, None, None), f"{row} has a host")
        assert row.shelf is not None
        keeps = row.shelf.store is None or row.uuid in world.guests.disks
        promise(keeps, f"{row.uuid} is shelved and has no disk")
        at = world.guests.ports.get(row.uuid, ("", 0))[0]
        promise(not at, f"{row.uuid} is shelved and its port is bound to {at}")
        return
    if row.state == ERROR:
        promise(bool(row.reason), f"{row.uuid} is in error without a reason")
        promise(not running, f"{row.uuid} is in error and runs: {running}")
        promise(held is None, f"{row.uuid} is in error and holds {held}")
        return
    promise(row.state in (*IN_PLACE, LOST), f"{row.uuid} is {row.state} for ever")
    expected = [(row.host, row.attempt)] if row.state == ACTIVE else []
    promise(running == expected, f"{row.uuid} is {row.state} on {row.host} and runs as {running}")
    promise(held is not None, f"{row.uuid} is {row.state} and holds nothing")
    assert held is not None and row.selection is not None
    roots = {world.placement.root(provider) for provider in held.allocations}
    promise(roots == {row.node}, f"{row.uuid} is on {row.node} and holds {held}")
    claimed = sum(each.get("VCPU", 0) for each in held.allocations.values())
    wanted = None if row.spec is None else row.spec.flavor.vcpus
    promise(claimed == wanted, f"{row.uuid} has a flavor of {wanted} VCPU and holds {held}")
    promise(
        held.allocations == row.selection.allocations,
        f"{row.uuid} says that it holds {row.selection.allocations} and holds {held}",
    )
    port = world.guests.ports.get(row.uuid, ("", 0))
    bound = row.state != ACTIVE or port[0] == row.host or not world.guests.have_ports
    promise(bound, f"{row.uuid} is on {row.host}, and its port on {port}")
    served = {provider for each in row.selection.mappings.values() for provider in each}
    promise(
        served == held.allocations.keys(),
        f"{row.uuid} is served by {row.selection.mappings} and holds {held}",
    )
    promise(
        held.consumer.generation == row.selection.generation,
        f"{row.uuid} says generation {row.selection.generation} and holds {held}",
    )


def check_history(world: "World", cell: str, row: Instance) -> None:
    """Check that the history of an instance has all attempts, in order, and ends with its state."""
    found: StoredHistory = world.read(f"cell/{cell}", read_history(row.uuid))
    told = [each.state for each in found.transitions if each.state not in (RESHAPED, *OF_MOVES)]
    promise(told[-1] == row.state, f"{row.uuid} is {row.state} and its history is {told}")
    promise(found.complete, f"the history of {row.uuid} is not complete: {told}")
    numbers = [each.attempt for each in found.transitions if each.state in _BEGIN]
    promise(numbers == [*range(1, len(numbers) + 1)], f"{row.uuid} has the attempts {numbers}")
    places = [each for each in found.transitions if each.state in (ASSIGNED, MOVED, *REBUILDS)]
    if places:
        last = places[-1]
        promise(told[0] == ASSIGNED, f"the history of {row.uuid} begins with {told[0]}")
        host = None if row.state == SHELVED else last.host
        promise(host == row.host, f"{row.uuid} is on {row.host}, not {last.host}")
        promise(last.attempt == row.attempt, f"{row.uuid} has attempt {row.attempt}, not {last.attempt}")


def check_story(world: "CloudWorld", uuid: str) -> None:
    """Check that the history of an instance begins with its acceptance and ends as the instance did."""
    known = world.read("api", find_known(uuid))
    promise(known is not None, f"{uuid} has no history")
    stored = None if known.cell is None else world.read(f"cell/{known.cell}", read_history(uuid))
    actions = actions_of(known, stored, ())
    create, last = actions[0], actions[-1]
    promise(create.events[0].name == "accept", f"the history of {uuid} begins with {create.events[0]}")
    promise(create.result is not None, f"the creation of {uuid} has not ended: {create}")
    is_deleted = uuid in world.deleted
    promise((last.kind == "delete") is is_deleted, f"{uuid} is deleted: {is_deleted}, and told: {actions}")
    promise(last.kind != "delete" or last.result == "success", f"the deletion of {uuid} never ended: {last}")
    events = [event for action in actions for event in action.events]
    going = [event for event in events if event.result is None]
    promise(not going, f"the history of {uuid} goes on: {going}")


def check_moves(world: "World", rows: dict[str, Instance]) -> dict[str, Move]:
    """Check that moves have ended, or wait for a word; returns those that wait."""
    waiting: dict[str, Move] = {}
    for cell in world.cells:
        for uuid, move in world.moves(cell).items():
            row = rows.get(move.instance)
            held = world.placement.held(uuid)
            if move.state == SWITCHED:
                promise(row is not None and row.move == uuid, f"{move} waits, but its instance is {row}")
                promise(held is not None, f"{move} holds nothing")
                assert held is not None
                roots = {world.placement.root(provider) for provider in held.allocations}
                promise(roots == {move.source.node}, f"{move} holds {held}")
                waiting[uuid] = move
                continue
            promise(move.state in ENDED, f"a move is {move.state} for ever: {move}")
            promise(row is None or row.move != uuid, f"{row} is locked by a move that is over: {move}")
            promise(held is None, f"{move} is over and holds {held}")
    kept = {(each.source.host, each.instance, each.source.attempt) for each in waiting.values()}
    kept |= {(row.host, row.uuid, row.attempt) for row in rows.values() if row.state == STOPPED}
    # One that could not be started again is lost.
    kept_too = {(row.host, row.uuid, row.attempt) for row in rows.values() if row.state == LOST}
    hosts = world.guests.hosts.values()
    resting = [(host.name, there) for host in hosts for there in (host.stopped, host.parked)]
    there = {(name, *each) for name, guests in resting for each in guests.items()}
    off = {(host.name, *each) for host in hosts for each in host.off.items()}
    promise(there - kept_too <= kept <= there | off, f"stopped guests {there}, and wanted are {kept}")
    return waiting


def check_providers(world: "World", host: Host) -> None:
    """Check that placement has the providers of a host, its CPUs and the traits of operators."""
    name = host.name
    there, expected = world.placement.tree(host.node), world.expected_tree(host)
    promise(there == expected, f"placement has the providers {there} and not {expected}")
    promise(world.is_shaped(host), f"the CPUs of {name} are at {world.placement.cpus(host.node)}")
    traits = world.placement.traits(host.node)
    promise(traits == {placement.OPERATORS}, f"{name} has the traits {traits}")
