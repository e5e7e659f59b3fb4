"""Resources of guests that other services keep: ports (Neutron) and accelerators (Cyborg).

ports         binds and unbinds Neutron ports
accelerators  binds and deletes Cyborg's accelerator requests
attaching_driver  a driver that attaches guests to these services around another driver
options       the services that the configuration names

A build attaches them before the driver prepares the guest; the end of a guest detaches them after the driver
has destroyed it. The ports of an instance that moves are bound when its guest starts on another host, and
again when it is started where it was. The requests are those of the real APIs, so a cloud's own services and
`roost neighbours` both serve.
"""

from typing import Protocol

from roost.agent.drivers import Attached
from roost.agent.protocol.types import PortsReleased
from roost.model.instance import Instance


class Neighbour(Protocol):
    """A service whose resources instances of one host are attached to.

    ``traits``: the traits that the root of a node has because of it. ``follows``: its resources are one for
    all hosts of an instance. Those of others are each host's own.
    """

    traits: tuple[str, ...]
    follows: bool

    def serves(self, instance: Instance) -> bool:
        """Return whether an instance needs this service."""

    async def attach(self, instance: Instance, over: int | None = None) -> Attached:
        """Attach all that an attempt needs, and return it. May be repeated: attached resources stay.

        ``over``: what attempts up to this one have on other hosts is taken back; None: what later attempts
        have is theirs.

        Raises `BuildFailed`, and `roost.web.auth.json_service.ServiceAway` if the service does not answer.
        """

    async def detach(self, instance: str, ports: PortsReleased = "host") -> None:
        """Detach the resources of an instance on this host. ``ports``: of those that follow it.

        Raises `ServiceAway` and `ServiceRefused`.
        """
