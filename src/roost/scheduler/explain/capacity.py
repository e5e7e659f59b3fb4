"""Counts the further instances of a request that fit, by really placing them one after another."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from roost.fleet import Fleet
from roost.model.folded_names import host_names
from roost.model.what_if import Share, WhatIf
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.explain.every_host import name_of
from roost.scheduler.explain.explained import explained
from roost.scheduler.explain.scenario import add_hosts, drain, drained_nodes
from roost.scheduler.explain.scratch import Scratch
from roost.scheduler.explain.supposition import Supposition
from roost.scheduler.explain.survey import MOST_NAMED, TimeLimit
from roost.scheduler.gateways.query_checks import check_queries
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.request_filters import FilterFacts
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.selection import Plugins

BATCH = 500
"""Instances that one run places, before the time limit is checked again.

A filter that does not declare ``depends_on_claims`` is asked once for all of them.
"""
MOST_SHARES = 100
"""Lines of an answer at most; each line is a number of instances and the hosts with so many."""


def what_if(
    fleet: Fleet,
    table: NodeTable,
    plugins: Plugins,
    supposed: Supposition,
    *,
    seconds: float = 20.0,
    explaining: float = 2.0,
) -> WhatIf:
    """Return how many more instances of a request fit, on which hosts, and why the next one does not.

    Fleet and table must belong to nobody else: hosts are drained and added for good. Claims are taken back.
    ``seconds``: time after which no further instance is placed; ``explaining``: further time after which no
    further changes of the request are tried.

    Raises: `SchedulerError` if the request cannot be judged, or the scenario names a host that does not
    exist.
    """
    time_limit, node_version = TimeLimit(seconds), table.version
    request = _suppose(fleet, table, supposed)
    scratch = Scratch(fleet, table, plugins)
    fits, refused, binds = 0, False, None
    with scratch.trying():
        while fits < supposed.limit and not refused and not time_limit.over():
            number = min(BATCH, supposed.limit - fits)
            placed = scratch.decide(_next(request, number), cached=True).destinations
            request = _with_members(request, [each.selected.host for each in placed])
            fits += len(placed)
            refused = len(placed) < number
        if refused:
            binds = explained(fleet, _next(request, 1), table, plugins, seconds=explaining)
        counted = Counter(scratch.index_of(claim) for claim in scratch.claims)
        shares = _shares({name_of(table, at): n for at, n in counted.items() if at is not None})
    return WhatIf(
        fits=fits,
        limited=fits == supposed.limit,
        complete=refused or fits == supposed.limit,
        on_hosts=len(counted),
        hosts=len(table),
        where=shares[:MOST_SHARES],
        shares_left_out=max(0, len(shares) - MOST_SHARES),
        binds=binds,
        version=fleet.version,
        node_version=node_version,
    )


def _suppose(fleet: Fleet, table: NodeTable, supposed: Supposition) -> SchedulingRequest:
    """Apply the scenario; returns the request in it, without instances yet."""
    spec, options = supposed.spec, supposed.options
    if is_rebuild(spec):
        raise BadRequestSpec("a rebuild takes no further host: how many fit cannot be asked")
    table.seen_since(supposed.now - options.service_down_time)
    # All names are looked up before anything changes: an added host cannot be drained or copied.
    drained = drained_nodes(table, supposed.scenario)
    for more in supposed.scenario.added:
        add_hosts(fleet, table, more)
    # A request may name a drained host. It keeps the name, and does not fit.
    asked = placement_queries(spec, FilterFacts(table, options, aggregates=supposed.aggregates))
    drain(table, drained)
    request = SchedulingRequest(
        run=str(uuid.uuid4()),
        spec=spec,
        query=asked.query,
        instances=(),
        num_alternates=0,
        min_count=1,
        now=supposed.now,
        options=options,
        fallbacks=asked.fallbacks,
        limit=asked.limit,
        places=asked.places,
    )
    check_queries(fleet, request.queries)
    return request


def _next(request: SchedulingRequest, number: int) -> SchedulingRequest:
    """Return the request for some new instances, of which as many as fit are placed."""
    instances = tuple(str(uuid.uuid4()) for _ in range(number))
    return msgspec.structs.replace(request, instances=instances)


def _with_members(request: SchedulingRequest, hosts: Sequence[str]) -> SchedulingRequest:
    """Return the request with new members of its server group on these hosts.

    A member in the spec may be one that has a claim, so a host's claims count only beyond the members that
    the spec names there.
    """
    spec = request.spec
    if spec.group is None:
        return request
    group = msgspec.structs.replace(spec.group, hosts=(*spec.group.hosts, *hosts))
    return msgspec.structs.replace(request, spec=msgspec.structs.replace(spec, group=group))


def _shares(numbers: Mapping[str, int]) -> tuple[Share, ...]:
    names: dict[int, list[str]] = {}
    for name, number in sorted(numbers.items()):
        names.setdefault(number, []).append(name)
    return tuple(
        Share(number, len(of), host_names(of[:MOST_NAMED], max(0, len(of) - MOST_NAMED)))
        for number, of in sorted(names.items(), reverse=True)
    )
