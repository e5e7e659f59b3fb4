"""Ports and accelerators of a guest, for drivers that plug them in: values of Neutron's and Cyborg's APIs."""

from typing import Any

import msgspec


class AttachedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port that is bound to the host.

    ``kind`` (``binding:vif_type``) says how it is plugged in, ``details`` (``binding:vif_details``) where.
    ``address``: the PCI device that serves it; None: no device does.

    Source: Neutron's port bindings, and ``nova/network/model.py``.
    """

    id: str
    network_id: str
    mac: str
    kind: str
    details: dict[str, Any] = {}
    address: str | None = None


class AttachedDevice(msgspec.Struct, frozen=True):
    """A bound accelerator request, with the ``kind`` and ``handle`` of its attach handle.

    Source: Cyborg's API v2, ``attach_handle_type`` and ``attach_handle_info``.
    """

    id: str
    kind: str
    handle: dict[str, str] = {}


class Attached(msgspec.Struct, frozen=True):
    """All ports and devices of one guest, in the order of the request."""

    ports: tuple[AttachedPort, ...] = ()
    devices: tuple[AttachedDevice, ...] = ()
