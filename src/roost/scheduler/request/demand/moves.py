"""Moves that devices do not allow.

Source: ``_check_can_migrate_pci`` of ``nova/conductor/tasks/live_migrate.py``, and the decorators
``block_accelerators``, ``block_port_accelerators`` and ``reject_vdpa_instances`` of ``nova/compute/api.py``.
"""

from typing import Final

from roost.fleet.hardware.pci_pools import VDPA
from roost.model.device_profiles import PROFILE
from roost.model.spec import PciRequest, RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable

VDPA_SERVICE_VERSION: Final = 63
"""The first version of nova-compute that can live migrate vDPA devices."""

SRIOV_SERVICE_VERSION: Final = 36
"""The first version of nova-compute that can live migrate the devices of ports. Nova requires it of the two
hosts. Here all nodes need it, as for vDPA."""


def check_move(spec: RequestSpec, requests: tuple[PciRequest, ...], table: NodeTable) -> None:
    """Check that the devices of a request can be moved by its operation.

    Raises:
        BadRequestSpec: they cannot be moved.
    """
    if spec.operation != "live_migrate":
        return
    if profile := spec.flavor.extra_specs.get(PROFILE):
        raise BadRequestSpec(
            "live_migrate: an instance with accelerators does not move while it runs "
            f"(flavor {spec.flavor.name} has {PROFILE}={profile!r})"
        )
    for port in spec.requested_networks:
        if port.device_profile is not None:
            raise BadRequestSpec(f"live_migrate: port {port.port_id} has an accelerator, which stays")
    for each in requests:
        _check_live_migration(each, table)


def _check_live_migration(request: PciRequest, table: NodeTable) -> None:
    if request.alias is not None:
        if not all(spec.get("live_migratable") == "true" for spec in request.specs):
            raise BadRequestSpec(
                f"live_migrate: the devices of alias {request.alias!r} cannot be live migrated, "
                "because it does not say live_migratable"
            )
        return
    is_vdpa = any(spec.get("dev_type") == VDPA for spec in request.specs)
    what, needed = ("vDPA", VDPA_SERVICE_VERSION) if is_vdpa else ("SR-IOV", SRIOV_SERVICE_VERSION)
    oldest = table.oldest_service_version
    if 0 < oldest < needed:
        raise BadRequestSpec(
            f"live_migrate: {what} device of port {request.requester_id or request.id}: a node has service "
            f"version {oldest}, and all need {needed}"
        )
