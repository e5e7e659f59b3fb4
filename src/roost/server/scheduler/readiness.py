"""What a scheduler needs to serve requests: placement, hosts, and Keystone if tokens are checked."""

from collections.abc import Sequence

from roost.ledger import Ledger
from roost.placement.client import HttpPlacement
from roost.placement.options import PlacementOptions
from roost.placement.readiness import keystone_checks, ledger_checks
from roost.scheduler.nodes.hosts import Hosts
from roost.web.health import Check, Health, NoAnswer


def scheduling_health(placement: Ledger | HttpPlacement, hosts: Hosts, options: PlacementOptions) -> Health:
    """The checks of `roost scheduler`. Raises `OperatorError` if the options for Keystone cannot work."""
    checks: Sequence[Check]
    if isinstance(placement, HttpPlacement):
        checks = (Check("placement", placement.root, _placement),)
    else:
        checks = ledger_checks(placement, options.health)
    return Health(
        (*checks, Check("hosts", judge=lambda _: _hosts(hosts)), *keystone_checks(options)), options.health
    )


def _placement(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    if isinstance(failure, NoAnswer):
        return str(failure)
    return "it does not answer as a placement service; the log has the error"


def _hosts(hosts: Hosts) -> str | None:
    return None if hosts.failure is None else "the hosts of placement cannot be read; the log has the error"
