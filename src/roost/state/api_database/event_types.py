"""Events, and their query and pages over HTTP."""

from typing import Annotated, Literal, cast, get_args

import msgspec
from msgspec import Meta

from roost.model.instance import Requester
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Moment, Uuid

EventKind = Literal[
    "host_added",
    "host_moved",
    "host_removed",
    "host_enabled",
    "host_disabled",
    "host_up",
    "host_down",
    "host_dead",
    "host_unproved",
    "node_enabled",
    "node_disabled",
    "cell_added",
    "cell_removed",
    "cell_enabled",
    "cell_disabled",
    "cell_up",
    "cell_down",
    "drain_begun",
    "drain_ended",
    "maintenance_begun",
    "maintenance_wave",
    "maintenance_host_left_out",
    "maintenance_paused",
    "maintenance_resumed",
    "maintenance_cancelled",
    "maintenance_ended",
    "service_up",
    "service_down",
    "task_taken",
    "aggregate_created",
    "aggregate_changed",
    "aggregate_deleted",
    "repair",
    "instance_assigned",
    "instance_starting",
    "instance_active",
    "instance_lost",
    "instance_powering_off",
    "instance_stopped",
    "instance_powering_on",
    "instance_rebuilding",
    "instance_rebuilding_stopped",
    "instance_shelving",
    "instance_offloaded",
    "instance_shelved",
    "instance_unshelving",
    "instance_failed",
    "instance_abandoned",
    "instance_error",
    "instance_deleting",
    "instance_destroyed",
    "instance_gone",
    "instance_reshaped",
    "instance_moving",
    "instance_moved",
    "instance_not_moved",
]

INSTANCE = "instance_"
"""The beginning of the kinds of the state changes of instances, which the cells' databases have."""

EVENT_KINDS: tuple[str, ...] = get_args(EventKind)


def kind_of_state(state: str) -> EventKind:
    """Return the kind of the events of instances that enter a state."""
    return cast(EventKind, INSTANCE + state.replace("-", "_"))


def state_of_kind(kind: str) -> str:
    """Return the state that instances enter by an event of a kind."""
    return kind.removeprefix(INSTANCE).replace("_", "-")


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event. `at`: seconds since the epoch, by the clock of the process that wrote it.

    - `host_added`, `host_removed`: an operator's. `host_moved`: into `cell`, from the cell in `detail`.
    - `host_enabled`, `host_disabled`, and those of nodes and cells: an operator's word; `detail` says why.
    - `drain_begun`, `drain_ended`: instances leave what an operator has disabled, a node, a host or a cell;
      nothing is left there, or `detail` says why it ended before.
    - `maintenance_begun` and others: the maintenance `name`, of which a wave begins, which is paused, goes
      on, is to end, or has ended. `maintenance_host_left_out`: it leaves a host out; `detail` says why.
    - `cell_up`, `cell_down`: the database of the cell answers again, or does not, as a conductor saw it.
    - `host_up`, `host_down`: the session of the host's agent, as a conductor saw it.
    - `host_dead`: no guest runs on a silent host, as `detail` proves: its instances are evacuated by
      themselves. `host_unproved`: they are not; `detail` says why.
    - `service_up`, `service_down`: the process `name` on `host`; in `cell`, or with the API database if null.
    - `task_taken`: the process on `host` took over the task `name`, of which there is one at a time.
    - `aggregate_created`, `aggregate_changed`, `aggregate_deleted`: the host aggregate `name`.
    - `repair`: of the audit: `name` says which, for `instance`, or the root provider of a node.
    - `instance_...`: `instance` entered a state; `host` and `node` are of its attempt at that time.
      `instance_gone`: nothing of it is left in its cell. `instance_reshaped`: it holds other providers.
      `instance_moving`: `host` is the target of its move; `instance_moved`: it runs there, or is back by a
      revert; `instance_not_moved`: it has stayed on its host.

    `by`: the requester; null without one, or if it is not known.
    """

    at: float
    kind: EventKind
    cell: str | None = None
    host: str | None = None
    node: str | None = None
    instance: str | None = None
    name: str | None = None
    detail: str | None = None
    by: Requester | None = None


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of events."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Events on a page at most.")] = DEFAULT_PAGE
    marker: Annotated[str | None, Meta(description="`next` of an earlier page: only what followed it.")] = (
        None
    )
    since: (
        Annotated[Moment, Meta(description="Only events of this time or a later one, in seconds since 1970.")]
        | None
    ) = None
    kind: Annotated[EventKind | None, Meta(description="Only events of this kind.")] = None
    cell: Annotated[str | None, Meta(description="Only events of this cell.")] = None
    host: Annotated[str | None, Meta(description="Only events of this host.")] = None
    instance: Annotated[Uuid | None, Meta(description="Only events of this instance.")] = None


class EventPage(msgspec.Struct, forbid_unknown_fields=True):
    """Events in the order in which they were written. A page may have fewer than `limit` of them, or none.

    `next`: the marker of the events that follow, also on the last page: later events follow it. `more`:
    whether such events are there already. `cells_down`: cells that cannot be asked; their events come on a
    later page.
    """

    events: list[CloudEvent]
    next: str
    more: bool
    cells_down: list[str]
