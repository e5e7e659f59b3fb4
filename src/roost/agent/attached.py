"""What a guest is attached to, for drivers that plug it in: values of Neutron's and Cyborg's APIs."""

from typing import Any

import msgspec


class AttachedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port that is bound to the host.

    ``kind`` says how it is plugged in, and ``details`` where (``binding:vif_type``, ``binding:vif_details``).
    ``address``: the PCI device that serves it, None if none does.

    Source: Neutron's port bindings, and ``nova/network/model.py``.
    """

    id: str
    network_id: str
    mac: str
    kind: str
    details: dict[str, Any] = {}
    address: str | None = None


class AttachedDevice(msgspec.Struct, frozen=True):
    """An accelerator request that is bound: ``kind`` and ``handle`` are its attach handle's.

    Source: Cyborg's API v2, ``attach_handle_type`` and ``attach_handle_info``.
    """

    id: str
    kind: str
    handle: dict[str, str] = {}


class Attached(msgspec.Struct, frozen=True):
    """All that one guest is attached to, in the order of the request."""

    ports: tuple[AttachedPort, ...] = ()
    devices: tuple[AttachedDevice, ...] = ()
