"""Hosts that satisfy a query which users write in a hint."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.host_state import ATTRIBUTES, HostState
from roost.scheduler.plugins.json_query import Query, is_true, query_of, variables
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.hints import hint
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class JsonFilter:
    """The host satisfies the scheduler hint ``query``: see `roost.scheduler.plugins.json_query`. Variables
    are the attributes of `roost.scheduler.plugins.host_state.HostState`. Source: Nova's filter of this
    name."""

    name = "JsonFilter"
    reads = (Key("hint", "query"),)
    looks_at = Looks.REPORT | Looks.TREE
    depends_on_claims = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        text = hint(request, "query")
        if not text:
            return None
        _read(text)  # A query that cannot be read is refused, even if no host is left to judge.
        return text

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        text = hint(request, "query")
        if not text:
            return None
        query = _read(text)
        names = sorted(set(variables(query)))
        known: dict[str, bool] = {}

        def passes(position: int) -> bool:
            state = HostState(hosts, position)
            values = {name: _value(state, name) for name in names}
            same = repr(values)
            if same not in known:
                known[same] = is_true(query, values.__getitem__)
            return known[same]

        return np.fromiter(map(passes, range(len(hosts))), np.bool_, len(hosts))


def _read(text: str) -> Query:
    try:
        return query_of(text)
    except ValueError as error:
        raise BadRequestSpec(f"scheduler hint 'query': {error}") from error


def _value(state: HostState, variable: str) -> Any:
    first, *keys = variable[1:].split(".")
    found = getattr(state, first) if first in ATTRIBUTES else None
    for key in keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


PLUGIN = JsonFilter
