"""What guests are attached to and other services keep: accelerators (Cyborg) and ports (Neutron).

A build attaches them before the driver prepares the guest, and what destroys the guest detaches them after
it. The shapes are those of the real APIs, so a cloud's own services and `roost neighbours` answer alike.
"""

from typing import Protocol

from roost.agent.attached import Attached
from roost.model.instance import Instance


class Neighbour(Protocol):
    """A service that instances of one host get something of.

    ``traits``: what the root of a node can do because of it.
    """

    traits: tuple[str, ...]

    def serves(self, instance: Instance) -> bool:
        """Whether an instance needs anything of this service."""

    async def attach(self, instance: Instance) -> Attached:
        """Attach all that an attempt needs, and tell it. What is attached already stays, so it may be done
        again.

        Raises `BuildFailed`, and `roost.web.auth.json_service.ServiceAway` if the service does not answer.
        """

    async def detach(self, instance: str) -> None:
        """Detach what an instance has on this host, and nothing that it has on another one.

        Raises `ServiceAway` and `ServiceRefused`.
        """
