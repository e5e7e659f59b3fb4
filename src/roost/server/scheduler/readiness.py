"""Readiness checks of the scheduler: placement, hosts, and Keystone if it checks tokens."""

from collections.abc import Sequence

from roost.ledger import Ledger
from roost.placement.client import HttpPlacement
from roost.placement.options import PlacementOptions
from roost.placement.readiness import keystone_checks, ledger_checks
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.web.health import Health, HealthCheck, NoAnswer


def scheduling_health(
    placement: Ledger | HttpPlacement, hosts: ServiceHosts, options: PlacementOptions
) -> Health:
    """Return the checks of `roost scheduler`. Raises `OperatorError` if Keystone's options cannot work."""
    checks: Sequence[HealthCheck]
    if isinstance(placement, HttpPlacement):
        checks = (HealthCheck("placement", placement.root, _placement),)
    else:
        checks = ledger_checks(placement, options.health)
    return Health(
        (*checks, HealthCheck("hosts", judge=lambda _: _hosts(hosts)), *keystone_checks(options)),
        options.health,
    )


def _placement(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    if isinstance(failure, NoAnswer):
        return str(failure)
    return "it does not answer as a placement service; the log has the error"


def _hosts(hosts: ServiceHosts) -> str | None:
    return None if hosts.failure is None else "the hosts of placement cannot be read; the log has the error"
