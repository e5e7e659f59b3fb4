"""Request filters: conditions that placement can check already, so that filters judge fewer hosts later.

Each is a function from a query to a narrower query, in a file of its own. `SPEC_FILTERS` read the request
spec and the options alone, so that their results are cached for requests that are alike. `TABLE_FILTERS` read
the node table and placement as well.

Source: ``nova/scheduler/request_filter.py``.

narrowed_query                         ways to narrow a query, and the data that request filters read
accelerators, packed_virtqueue, remote_managed_ports, sound  features of the host that ports and flavors need
ephemeral_encryption, tpm_secret_security  encryption of disks and of virtual TPMs
image_metadata, image_type             traits that images need
compute_status, owner                  enabled nodes, and providers that Nova's agents own
availability_zone, requested_destination, routed_networks  hosts by zone, destination and network segment
isolated_aggregates, tenant_aggregates aggregates reserved for traits or projects
"""

from typing import Final

from roost.scheduler.request.request_filters.accelerators import require_accelerators
from roost.scheduler.request.request_filters.availability_zone import ask_for_zone
from roost.scheduler.request.request_filters.compute_status import leave_out_disabled
from roost.scheduler.request.request_filters.ephemeral_encryption import require_ephemeral_encryption
from roost.scheduler.request.request_filters.image_metadata import require_traits_of_image
from roost.scheduler.request.request_filters.image_type import require_image_type
from roost.scheduler.request.request_filters.isolated_aggregates import leave_out_isolated_aggregates
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts, SpecFilter, TableFilter
from roost.scheduler.request.request_filters.owner import require_owner
from roost.scheduler.request.request_filters.packed_virtqueue import require_packed_virtqueue
from roost.scheduler.request.request_filters.remote_managed_ports import require_remote_managed_ports
from roost.scheduler.request.request_filters.requested_destination import ask_for_destination
from roost.scheduler.request.request_filters.routed_networks import ask_for_segments
from roost.scheduler.request.request_filters.sound import require_sound
from roost.scheduler.request.request_filters.tenant_aggregates import ask_for_tenant_aggregates
from roost.scheduler.request.request_filters.tpm_secret_security import require_tpm_secret_security

__all__ = ["SPEC_FILTERS", "TABLE_FILTERS", "FilterFacts"]

SPEC_FILTERS: Final[tuple[SpecFilter, ...]] = (
    require_image_type,
    leave_out_disabled,
    require_traits_of_image,
    require_accelerators,
    require_packed_virtqueue,
    require_remote_managed_ports,
    require_ephemeral_encryption,
    require_sound,
    require_tpm_secret_security,
)

TABLE_FILTERS: Final[tuple[TableFilter, ...]] = (
    ask_for_destination,
    ask_for_tenant_aggregates,
    ask_for_zone,
    leave_out_isolated_aggregates,
    ask_for_segments,
    require_owner,
)
