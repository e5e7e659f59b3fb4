"""Hosts whose aggregates are not reserved for other projects."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.labels import LACKS
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import words
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

PREFIX = "filter_tenant_id"


class AggregateMultiTenancyIsolation:
    """The request's project is in the metadata of the host's aggregates under a key that begins with
    ``filter_tenant_id``, or no aggregate of the host has such a key. Ids are separated by commas. Several
    keys (``filter_tenant_id2`` and so on) make room for more ids than fit in one value.

    Source: Nova's filter of this name.
    """

    name = "AggregateMultiTenancyIsolation"
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return request.spec.project_id

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        # A key whose value has the project takes precedence over keys that lack it.
        greatest = None
        for key in hosts.table.metadata_keys(PREFIX):
            labels = hosts.table.metadata(key)
            if labels is not None:
                found = labels.holding(request.spec.project_id, words, hosts.index)
                greatest = found if greatest is None else np.maximum(greatest, found)
        return None if greatest is None else greatest != LACKS


PLUGIN = AggregateMultiTenancyIsolation
