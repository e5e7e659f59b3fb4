"""The addresses of the dashboard's pages: the one place that knows them."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

ROOT: Final = "/ui"
ASSETS: Final = "/ui/assets/"
LOGIN: Final = "/ui/login"
LOGOUT: Final = "/ui/logout"
MAP: Final = "/ui/map"
MAP_LAYOUT: Final = "/ui/map/layout"
MAP_LEVELS: Final = "/ui/map/levels"
MAP_HOST: Final = "/ui/map/host"
MAP_FIND: Final = "/ui/map/find"
HOSTS: Final = "/ui/hosts"
INSTANCES: Final = "/ui/instances"
DECISIONS: Final = "/ui/decisions"
CELLS: Final = "/ui/cells"
EVENTS: Final = "/ui/events"
MAINTENANCES: Final = "/ui/maintenances"
FLAVORS: Final = "/ui/flavors"
WHAT_IF: Final = "/ui/what-if"
SERIES: Final = "/ui/series"
SEARCH: Final = "/ui/search"
LIVE: Final = "/ui/live"
ACTIONS: Final = "/ui/actions"


def host(uuid: str) -> str:
    """Return the address of a host, by the uuid of its root provider."""
    return f"{HOSTS}/{quote(uuid, safe='')}"


def action(verb: str, **query: str | None) -> str:
    """Return the address of the page that asks before an action. ``query``: its subject."""
    return with_query(f"{ACTIONS}/{verb}", **query)


def instance(uuid: str) -> str:
    """Return the address of an instance."""
    return f"{INSTANCES}/{quote(uuid, safe='')}"


def maintenance(uuid: str) -> str:
    """Return the address of a maintenance."""
    return f"{MAINTENANCES}/{quote(uuid, safe='')}"


def cell(name: str) -> str:
    """Return the address of a cell: its part of the page of cells."""
    return f"{CELLS}#cell-{quote(name, safe='')}"


def decision(run: str) -> str:
    """Return the address of a decision, by the id of its run."""
    return f"{DECISIONS}/{quote(run, safe='')}"


def redecision(run: str) -> str:
    """Return the address of a decision made again without each of its conditions."""
    return f"{decision(run)}/without"


def changed(path: str, given: Mapping[str, object], plain: Mapping[str, object], **changes: object) -> str:
    """Return an address with some parameters changed, without those that are as they are by default.

    ``given``: the parameters of the page that is shown. ``plain``: the defaults.
    """
    merged = {**given, **changes}
    return with_query(path, **{key: value for key, value in merged.items() if plain.get(key) != value})


def with_query(path: str, **query: object) -> str:
    """Return an address with a query, without the parameters that are None or empty."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
