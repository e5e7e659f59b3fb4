"""Requests that no change of the hosts could serve."""

from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec, UnknownZone
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions


def check_servable(spec: RequestSpec, table: NodeTable, options: SchedulerOptions) -> None:
    """Check that the zone of a request exists, and that the request does not contradict itself.

    Raises:
        UnknownZone: no aggregate is an availability zone of this name.
        BadRequestSpec: the request wants what it excludes.
    """
    zone = spec.availability_zone
    if zone is not None and not _is_zone(zone, table, options):
        raise UnknownZone(f"there is no availability zone {zone!r}")
    same, different = (set(spec.scheduler_hints.get(each, ())) for each in ("same_host", "different_host"))
    if same - {""} and same <= different:
        raise BadRequestSpec(f"scheduler hints same_host and different_host both name instance {min(same)}")
    destination = spec.requested_destination
    wanted = {*spec.force_hosts, *([destination.host] if destination and destination.host else [])}
    ignored = {host.lower() for host in spec.ignore_hosts}
    if wanted and all(host.lower() in ignored for host in wanted):
        raise BadRequestSpec(f"host {min(wanted)} is asked for, and is among ignore_hosts")


def _is_zone(name: str, table: NodeTable, options: SchedulerOptions) -> bool:
    return name == options.default_availability_zone or bool(table.aggregates_with(AVAILABILITY_ZONE, name))
