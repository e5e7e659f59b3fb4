"""The map of a fleet as the scheduler sends it, read by page."""

from typing import Final, Literal

import msgspec

from roost.cli.service_client import RequestRefused, ServiceClient
from roost.model.errors import OperatorError

PATH: Final = "/v1/scheduler/map"

_GONE: Final = 410

ATTEMPTS: Final = 4
"""Most attempts to read all pages while hosts come and go between them."""

LEVELS: Final = "0123456789abcdefghijklmnopqrstuv"
"""The characters of the levels, from nothing to all."""

UP: Final = "."
DISABLED: Final = "!"
DOWN: Final = "x"
"""The characters of the states of hosts."""

By = Literal["used", "free", "state"]


class DrawnAmounts(msgspec.Struct, frozen=True):
    """DrawnAmounts of a resource class, in units of the class."""

    capacity: int = 0
    used: int = 0
    reserved: int = 0
    total: int = 0


class DrawnGroup(msgspec.Struct):
    """The hosts of one zone, label and cell. ``levels`` and ``states``: a character for each host."""

    zone: str
    label: str
    cell: str
    hosts: int
    up: int
    disabled: int
    down: int
    amounts: DrawnAmounts | None
    levels: str | None
    states: str
    names: list[str] = []


class DrawnMap(msgspec.Struct):
    """The whole map.

    ``most``: the free units of the last level, if levels are free amounts. ``label``: the metadata key of the
    groups' labels; None: they have none.
    """

    version: int | None
    layout: str
    resource_class: str
    by: By
    resource_classes: list[str]
    most: int | None
    hosts: int
    groups: list[DrawnGroup]
    next: str | None = None
    label: str | None = None


class MapChoice(msgspec.Struct, frozen=True):
    """The hosts of a map, and what its levels are."""

    resource_class: str
    by: By
    zone: str | None = None
    cell: str | None = None
    label: str | None = None


def read_map(scheduler: ServiceClient, choice: MapChoice, names_every: int | None) -> DrawnMap:
    """Read all pages of a map. ``names_every``: hosts from one name to the next.

    Raises `OperatorError`: also if hosts come and go all the time, or if no host has the resource class.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return _whole(scheduler, choice, names_every)
        except RequestRefused as refused:
            if refused.status != _GONE or not left:
                raise
    raise AssertionError


def _whole(scheduler: ServiceClient, choice: MapChoice, names_every: int | None) -> DrawnMap:
    query: dict[str, object] = {
        **msgspec.structs.asdict(choice),
        "by": "used" if choice.by == "state" else choice.by,
        "names_every": names_every,
    }
    found = msgspec.convert(scheduler.ask("GET", PATH, query=query), DrawnMap)
    while found.next is not None:
        page = msgspec.convert(scheduler.ask("GET", PATH, query={**query, "marker": found.next}), DrawnMap)
        _add(found, page)
    known = found.resource_classes
    if choice.by != "state" and known and choice.resource_class not in known:
        raise OperatorError(f"no host has {choice.resource_class}: there are {', '.join(known)}")
    found.by, found.label = choice.by, choice.label
    return found


def _add(found: DrawnMap, page: DrawnMap) -> None:
    """Add the hosts of a page to the map. A group may begin on one page and end on another."""
    groups = iter(page.groups)
    first = next(groups, None)
    last = found.groups[-1] if found.groups else None
    if first is not None and last is not None and _place(first) == _place(last):
        last.states += first.states
        last.levels = None if last.levels is None else last.levels + (first.levels or "")
        last.names += first.names
    elif first is not None:
        found.groups.append(first)
    found.groups += groups
    found.next = page.next


def _place(group: DrawnGroup) -> tuple[str, str, str]:
    return group.zone, group.label, group.cell
