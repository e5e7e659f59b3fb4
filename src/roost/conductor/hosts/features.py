"""The features of today that processes of earlier versions hold back."""

from roost.conductor.hosts.watch import Seen, ServiceWatch
from roost.model.service_version import Feature
from roost.state.cell_database.overdue_work import SESSION
from roost.web.errors import Conflict

NAMED = 3
"""Processes that a refusal names, at most."""


class FeatureOff(Conflict):
    """A request needs a feature that processes of an earlier version would pass over."""

    code = "roost.feature_off"


def held_back_by(watch: ServiceWatch, feature: Feature) -> list[Seen]:
    """The processes and agents of a version before the feature that are there.

    Those that are down do not count: an agent that comes back without the feature gets nothing that needs it
    (`roost.conductor.agent_endpoint.endpoint`). The versions are those that were seen last: no database is
    asked.
    """
    return [each for each in watch.behind() if each.lease.service_version < feature.since]


def check_feature(watch: ServiceWatch, feature: Feature) -> None:
    """Raises `FeatureOff`, which names who holds the feature back."""
    older = held_back_by(watch, feature)
    if not older:
        return
    named = ", ".join(map(_told, older[:NAMED]))
    more = f" and {len(older) - NAMED} more" if len(older) > NAMED else ""
    raise FeatureOff(
        f"{feature.what} once all processes have service version {feature.since}: {named}{more}; see "
        "GET /v1/services"
    )


def _told(seen: Seen) -> str:
    what = f"the agent of host {seen.lease.host}" if seen.lease.kind == SESSION else seen.lease.name
    where = "" if seen.cell is None else f" of cell {seen.cell}"
    return f"{what}{where} has {seen.lease.service_version}"
