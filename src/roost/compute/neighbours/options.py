"""Which neighbours the hosts of a process have: those for which the configuration has a group.

The groups are Nova's: ``[cyborg]`` and ``[neutron]``, with the options of keystoneauth1. One without
``auth_type`` is not used.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import httpx
from oslo_config import cfg

from roost.auth import Source
from roost.auth.calling import Caller
from roost.compute.neighbours import Neighbour
from roost.compute.neighbours.accelerators import Accelerators
from roost.compute.neighbours.calling import NeighbourApi
from roost.compute.neighbours.ports import Ports

ANSWER_SECONDS: Final = 60
"""Seconds that a service may take to connect, and between two parts of its answer."""


class _Kind(NamedTuple):
    service_type: str
    name: str
    make: Callable[[NeighbourApi, str], Neighbour]


GROUPS: Final[Mapping[str, _Kind]] = {
    "cyborg": _Kind("accelerator", "the accelerator service", Accelerators),
    "neutron": _Kind("network", "the network service", Ports),
}
"""In the order in which guests are attached to them."""


class Neighbours:
    """The neighbours of all hosts of a process, which share their connections. Close it at the end."""

    def __init__(self, apis: Mapping[str, NeighbourApi]) -> None:
        self._apis = apis

    async def close(self) -> None:
        """Close all connections."""
        for api in self._apis.values():
            await api.close()

    def of(self, host: str) -> Sequence[Neighbour]:
        """Those of one host."""
        return [GROUPS[group].make(api, host) for group, api in self._apis.items()]


def configured_neighbours(source: Source) -> Neighbours:
    """The neighbours that the configuration names. Raises `OperatorError`."""
    found = [group for group in GROUPS if _is_used(source, group)]
    return Neighbours({group: _api(source, group) for group in found})


def _is_used(source: Source, group: str) -> bool:
    conf = source.open()
    source.register(conf, group, [cfg.StrOpt("auth_type"), cfg.StrOpt("auth_section")])
    return conf[group].auth_type is not None or conf[group].auth_section is not None


def _api(source: Source, group: str) -> NeighbourApi:
    # Imported only here: its import takes as long as all others together.
    from roost.auth.keystone_credentials import read_client_options

    kind = GROUPS[group]
    options = read_client_options(source, group, kind.service_type)
    client = httpx.AsyncClient(timeout=ANSWER_SECONDS, verify=options.verify)
    return NeighbourApi(kind.name, Caller(options.credentials, client))
