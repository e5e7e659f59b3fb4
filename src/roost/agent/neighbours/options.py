"""The neighbours of a process's hosts: the services for which the configuration has a group.

The groups are Nova's: ``[cyborg]`` and ``[neutron]``, with the options of keystoneauth1. A group without
``auth_type`` is not used.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from roost.agent.neighbours import Neighbour
from roost.agent.neighbours.accelerators import Accelerators
from roost.agent.neighbours.ports import Ports
from roost.process.option_source import Source
from roost.web.auth.json_service import JsonService


class _Kind(NamedTuple):
    service_type: str
    name: str
    make: Callable[[JsonService, str], Neighbour]


GROUPS: Final[Mapping[str, _Kind]] = {
    "cyborg": _Kind("accelerator", "the accelerator service", Accelerators),
    "neutron": _Kind("network", "the network service", Ports),
}
"""The services by option group, in the order in which guests are attached to them."""


class NeighbourServices:
    """The neighbours of all hosts of a process, which share their connections. Close it at the end."""

    def __init__(self, apis: Mapping[str, JsonService]) -> None:
        self._apis = apis

    async def close(self) -> None:
        """Close all connections."""
        for api in self._apis.values():
            await api.close()

    def of(self, host: str) -> Sequence[Neighbour]:
        """Return the neighbours of one host."""
        return [GROUPS[group].make(api, host) for group, api in self._apis.items()]


def configured_neighbours(source: Source) -> NeighbourServices:
    """Return the neighbours that the configuration names. Raises `OperatorError`."""
    found = {
        group: JsonService.configured(source, group, kind.service_type, kind.name)
        for group, kind in GROUPS.items()
    }
    return NeighbourServices({group: api for group, api in found.items() if api is not None})
