"""Hosts in failure domains with fewer members of the server group are better."""

from collections import Counter
from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Float64
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import ELSEWHERE, GroupPlacement, SchedulingRequest

GROUP = "failure_domain_weigher"


class FailureDomainOptions(OptionStruct, frozen=True, group=GROUP):
    """``metadata_key``: the hosts whose aggregates have the same value for it are one failure domain."""

    metadata_key: str = option(
        "availability_zone",
        help="Hosts whose aggregates have the same value for this metadata key are one failure "
        "domain of FailureDomainWeigher.",
    )


class FailureDomainWeigher:
    """The negated number of members of the request's server group in the host's failure domain, those
    placed by this run counted.

    A failure domain is the set of hosts whose aggregates have the same value for a metadata key: a zone, a
    rack. A host without a value is a domain of its own. Requests without a server group are not weighed.
    """

    name = "FailureDomainWeigher"
    multiplier_key = "failure_domain_weight_multiplier"
    default_multiplier = 1.0
    beyond_nova = True
    looks_at = Looks.REPORT | Looks.MEMBERS
    reads_other_hosts = True
    OPTIONS = FailureDomainOptions

    def __init__(self, options: FailureDomainOptions) -> None:
        self._key = options.metadata_key

    def key(self, request: SchedulingRequest) -> Hashable | None:
        group = request.spec.group
        return None if group is None else group.uuid

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if request.spec.group is None:
            return None
        labels = hosts.table.metadata(self._key)
        members: Counter[tuple[str, ...]] = Counter()
        for index, count in progress.members.items():
            domain = labels.of(index) if labels is not None and index != ELSEWHERE else ()
            if domain:
                members[domain] += count
        alone = np.array([progress.members.get(index, 0) for index in hosts.index.tolist()], dtype=np.float64)
        if labels is None:
            return -alone
        together = labels.judged(lambda values: members[values] if values else -1, hosts.index)
        return -np.where(together < 0, alone, together)


PLUGIN = FailureDomainWeigher
