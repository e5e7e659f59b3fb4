"""States of instances, moves, decisions, maintenances, hosts and cells in words, each with its mark."""

from typing import Final, NamedTuple

import htpy as h


class ShownState(NamedTuple):
    """A state in words. ``mark``: ok, look, fails, note or off (``.state-…`` of the style)."""

    mark: str
    words: str


_INSTANCES: Final = {
    "scheduling": ShownState("note", "Scheduling"),
    "assigned": ShownState("note", "Assigned"),
    "starting": ShownState("note", "Starting"),
    "active": ShownState("ok", "Active"),
    "lost": ShownState("fails", "Lost"),
    "powering-off": ShownState("note", "Powering off"),
    "stopped": ShownState("off", "Stopped"),
    "powering-on": ShownState("note", "Powering on"),
    "rebuilding": ShownState("note", "Rebuilding"),
    "rebuilding-stopped": ShownState("note", "Rebuilding, stopped"),
    "shelving": ShownState("note", "Shelving"),
    "offloaded": ShownState("note", "Offloaded, its claim is freed"),
    "shelved": ShownState("off", "Shelved"),
    "unshelving": ShownState("note", "Unshelving, looks for a host"),
    "failed": ShownState("look", "Build failed"),
    "abandoned": ShownState("look", "Abandoned"),
    "error": ShownState("fails", "Error"),
    "deleting": ShownState("off", "Deleting"),
    "destroyed": ShownState("off", "Destroyed"),
    "deleted": ShownState("off", "Deleted"),
    "unknown": ShownState("look", "Unknown"),
}

_DECISIONS: Final = {
    "built": ShownState("ok", "Placed"),
    "building": ShownState("note", "Building"),
    "partly": ShownState("look", "Partly placed"),
    "refused": ShownState("fails", "Refused"),
    "failed": ShownState("fails", "Builds failed"),
    "abandoned": ShownState("off", "Abandoned"),
    "chosen": ShownState("note", "Chosen, not claimed"),
    "decided": ShownState("off", "Decided"),
}

_MOVES: Final = {
    "requested": ShownState("note", "Looks for a host"),
    "seeking": ShownState("note", "Looks for a host in all cells"),
    "sending": ShownState("note", "Waits for another cell"),
    "preparing": ShownState("note", "The target prepares"),
    "stopping": ShownState("note", "The source stops"),
    "stopped": ShownState("note", "Stopped on the source"),
    "starting": ShownState("note", "The target starts"),
    "receiving": ShownState("note", "The target prepares to receive"),
    "switching": ShownState("note", "The guest goes over"),
    "cancelling": ShownState("look", "The source is told to keep the guest"),
    "landing": ShownState("note", "The target says whether it has the guest"),
    "retrying": ShownState("look", "Looks for another host"),
    "restarting": ShownState("look", "The source starts again"),
    "returning": ShownState("look", "Stays where it was"),
    "switched": ShownState("ok", "Moved, not confirmed"),
    "cleaning": ShownState("ok", "Moved, the source cleans up"),
    "reverting": ShownState("note", "Goes back: the target stops"),
    "resuming": ShownState("note", "Goes back: the source starts"),
    "continuing": ShownState("look", "Cannot go back: the target starts"),
    "undoing": ShownState("note", "Goes back: claims are exchanged"),
    "discarding": ShownState("note", "Went back, the target cleans up"),
    "refused": ShownState("look", "The other cell cannot take it"),
    "freeing": ShownState("ok", "The claim is given back"),
    "done": ShownState("ok", "Moved"),
    "reverted": ShownState("ok", "Went back"),
    "failed": ShownState("fails", "Did not move"),
    "deleted": ShownState("off", "Deleted"),
}

_ATTEMPTS: Final = {
    "pending": ShownState("note", "Building"),
    "built": ShownState("ok", "Built"),
    "refused": ShownState("look", "Claim refused"),
    "failed": ShownState("fails", "Build failed"),
    "abandoned": ShownState("off", "Abandoned"),
}

_MAINTENANCES: Final = {
    "running": ShownState("note", "Under way"),
    "paused": ShownState("look", "Paused"),
    "cancelling": ShownState("look", "Being cancelled"),
    "done": ShownState("ok", "Done"),
    "cancelled": ShownState("off", "Cancelled"),
}

_HOSTS_IN_MAINTENANCE: Final = {
    "waiting": ShownState("off", "Waits for a wave"),
    "disabling": ShownState("note", "Being disabled"),
    "emptying": ShownState("note", "Being emptied"),
    "in-work": ShownState("note", "In work"),
    "returning": ShownState("note", "Being given back"),
    "returned": ShownState("ok", "Given back"),
    "left-out": ShownState("fails", "Left out"),
}

_PLACES: Final = {
    "up": ShownState("ok", "Up"),
    "down": ShownState("fails", "Down"),
    "no_conductor": ShownState("fails", "No conductor"),
    "no_host_up": ShownState("fails", "No host up"),
    "unknown": ShownState("look", "Unknown"),
}


def instance_state(state: str) -> ShownState:
    """Return the state of an instance in words."""
    return _INSTANCES.get(state, ShownState("note", state))


def move_state(state: str) -> ShownState:
    """Return the state of a move in words."""
    return _MOVES.get(state, ShownState("note", state))


def decision_state(outcome: str) -> ShownState:
    """Return the outcome of a decision in words."""
    return _DECISIONS.get(outcome, ShownState("note", outcome))


def attempt_state(result: str) -> ShownState:
    """Return the result of an attempt in words."""
    return _ATTEMPTS.get(result, ShownState("note", result))


def maintenance_state(state: str) -> ShownState:
    """Return the state of a maintenance in words."""
    return _MAINTENANCES.get(state, ShownState("note", state))


def host_in_maintenance_state(state: str) -> ShownState:
    """Return the state of a host of a maintenance in words."""
    return _HOSTS_IN_MAINTENANCE.get(state, ShownState("note", state))


def place_state(state: str) -> ShownState:
    """Return the state of a host, a cell or a process in words."""
    return _PLACES.get(state, ShownState("note", state))


def state_mark(shown: ShownState, *, chip: bool = False) -> h.Element:
    """Return a state with its mark. ``chip``: as a label of its own."""
    return h.span(class_=["chip" if chip else None, f"state-{shown.mark}"])[shown.words]
