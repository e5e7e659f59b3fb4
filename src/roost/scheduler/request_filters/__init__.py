"""Request filters: what can be asked of placement already, so that hosts need not be looked at later.

Each is a function from a query to a narrower query; all are applied, in this order.
"""

from collections.abc import Callable
from typing import Final

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters.availability_zone import ask_for_zone
from roost.scheduler.request_filters.compute_status import leave_out_disabled
from roost.scheduler.request_filters.requested_host import ask_for_host

RequestFilter = Callable[[CandidateQuery, RequestSpec, NodeTable, SchedulerOptions], CandidateQuery]

REQUEST_FILTERS: Final[tuple[RequestFilter, ...]] = (leave_out_disabled, ask_for_zone, ask_for_host)
