"""Nodes whose service is disabled carry a trait; placement leaves them out."""

import msgspec

from roost.model.request import CandidateQuery
from roost.model.spec import RequestSpec
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.options import SchedulerOptions


def leave_out_disabled(query: CandidateQuery, spec: RequestSpec, options: SchedulerOptions) -> CandidateQuery:
    """Forbid COMPUTE_STATUS_DISABLED on the root."""
    return msgspec.structs.replace(query, root_forbidden=query.root_forbidden | {DISABLED_TRAIT})
