"""Request filters: what can be asked of placement already, so that hosts need not be looked at later.

Each is a function from a query to a narrower query, in a file of its own. `SPEC_FILTERS` look at the request
spec and the options alone, so that their results are kept for requests that are alike. `TABLE_FILTERS` look
at the node table and at placement as well.

Source: ``nova/scheduler/request_filter.py``.
"""

from typing import Final

from roost.scheduler.request.request_filters.accelerators import require_accelerators
from roost.scheduler.request.request_filters.availability_zone import ask_for_zone
from roost.scheduler.request.request_filters.compute_status import leave_out_disabled
from roost.scheduler.request.request_filters.ephemeral_encryption import require_ephemeral_encryption
from roost.scheduler.request.request_filters.image_metadata import require_traits_of_image
from roost.scheduler.request.request_filters.image_type import require_image_type
from roost.scheduler.request.request_filters.isolated_aggregates import leave_out_isolated_aggregates
from roost.scheduler.request.request_filters.narrowed_query import Facts, SpecFilter, TableFilter
from roost.scheduler.request.request_filters.owner import require_owner
from roost.scheduler.request.request_filters.packed_virtqueue import require_packed_virtqueue
from roost.scheduler.request.request_filters.remote_managed_ports import require_remote_managed_ports
from roost.scheduler.request.request_filters.requested_destination import ask_for_destination
from roost.scheduler.request.request_filters.routed_networks import ask_for_segments
from roost.scheduler.request.request_filters.sound import require_sound
from roost.scheduler.request.request_filters.tenant_aggregates import ask_for_tenant_aggregates
from roost.scheduler.request.request_filters.tpm_secret_security import require_tpm_secret_security

__all__ = ["SPEC_FILTERS", "TABLE_FILTERS", "Facts"]

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
