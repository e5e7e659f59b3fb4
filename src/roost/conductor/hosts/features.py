"""The features that are refused while processes of earlier versions run."""

from roost.conductor.hosts.watch import SeenLease, ServiceWatch
from roost.model.service_version import Feature
from roost.state.cell_database.host_work import SESSION
from roost.web.errors import Conflict

NAMED = 3
"""Processes that a refusal names, at most."""


class FeatureOff(Conflict):
    """A request needs a feature that processes of an earlier version would ignore."""

    code = "roost.feature_off"


def held_back_by(watch: ServiceWatch, feature: Feature) -> list[SeenLease]:
    """Return the processes and agents that are up and whose version is older than the feature.

    Those that are down do not count: an agent that comes back without the feature gets no work that needs it
    (`roost.conductor.agent_endpoint.too_old`). The versions are those that were seen last: no database is
    read.
    """
    return [each for each in watch.behind() if each.lease.service_version < feature.since]


def check_feature(watch: ServiceWatch, feature: Feature) -> None:
    """Raise `FeatureOff`, with the names of the processes that lack the feature, if there are any."""
    older = held_back_by(watch, feature)
    if not older:
        return
    named = ", ".join(map(_told, older[:NAMED]))
    more = f" and {len(older) - NAMED} more" if len(older) > NAMED else ""
    raise FeatureOff(
        f"{feature.what} once all processes have service version {feature.since}: {named}{more}; see "
        "GET /v1/services"
    )


def _told(seen: SeenLease) -> str:
    what = f"the agent of host {seen.lease.host}" if seen.lease.kind == SESSION else seen.lease.name
    where = "" if seen.cell is None else f" of cell {seen.cell}"
    return f"{what}{where} has {seen.lease.service_version}"
