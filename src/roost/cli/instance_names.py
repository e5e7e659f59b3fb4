"""Names of instances on the command line: uuids, beginnings of uuids, and names that users gave."""

import re
from typing import Any

from roost.cli.service_client import RequestRefused, ServiceClient

PATH = "/v1/instances"
MOST_LISTED = 10
"""Most instances that an error message lists."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PREFIX = re.compile(r"[0-9a-f-]{4,35}", re.IGNORECASE)
_SHORT = ": of a uuid give four or more characters"
_FORBIDDEN = 403
_NOT_FOUND = 404
_CONFLICT = 409


def uuid_of(conductor: ServiceClient, named: str) -> str:
    """Return the uuid of the one instance with a name, a uuid or the beginning of one.

    Instances of the token's project come first, then all that the token may see. A name precedes the
    beginning of a uuid.

    Raises:
        RequestRefused: no instance matches, or several do.
    """
    if _UUID.fullmatch(named):
        return named.lower()
    looks: list[dict[str, object]] = [{"name": named}]
    if _PREFIX.fullmatch(named):
        looks.append({"uuid_prefix": named.lower()})
    for of_all in (None, True):
        for look in looks:
            found = _listed(conductor, {**look, "all_projects": of_all, "limit": MOST_LISTED})
            if len(found) == 1:
                return str(found[0]["uuid"])
            if found:
                listed = ", ".join(f"{each['uuid']} ({each['state']})" for each in found)
                more = " or more" if len(found) == MOST_LISTED else ""
                raise RequestRefused(
                    _CONFLICT,
                    f"{len(found)}{more} instances are named {named}: {listed}. Give the uuid of one",
                )
    raise RequestRefused(_NOT_FOUND, f"no instance {named!r}{_SHORT if _is_short(named) else ''}")


def _is_short(named: str) -> bool:
    return re.fullmatch("[0-9a-f]{1,3}", named, re.IGNORECASE) is not None


def _listed(conductor: ServiceClient, query: dict[str, object]) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = conductor.ask("GET", PATH, query=query)["instances"]
        return found
    except RequestRefused as error:
        if query["all_projects"] and error.status == _FORBIDDEN:
            return []
        raise
