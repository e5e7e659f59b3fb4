"""What-ifs: counts the further instances of a request that fit, by really placing them one after another.

It is done in forked processes, one at a time, beside the ledger's writer.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.folded_names import host_names
from roost.model.what_if import Share, WhatIf, ZoneShare
from roost.placement.queries.forked_turns import ForkedTurns
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.explain.explainer import MORE_BYTES, SHARE
from roost.scheduler.explain.explanation import explain
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.explain.scenario import Supposition, add_hosts, drain, drained_nodes
from roost.scheduler.explain.snapshot import host_name
from roost.scheduler.explain.survey import MOST_NAMED, TimeLimit
from roost.scheduler.forked_answers import ForkedAnswers
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.changed import (
    Changes,
    NoSuchConstraint,
    changed_options,
    changed_queries,
    changed_spec,
    plugins_of,
)
from roost.scheduler.request.query import check_queries
from roost.scheduler.request.rebuild import is_rebuild
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

MOST_WAITING: Final = 8
"""What-ifs that have or await their turn. Further ones are not answered."""
SECONDS: Final = 20.0
"""Seconds after which no further instance is placed."""
SECONDS_MORE: Final = 10.0
"""Further seconds for which a process may run, to explain why the next instance does not fit."""
BATCH = 500
"""Instances that one run places, before the time limit is checked again.

A filter that does not declare ``depends_on_claims`` is asked once for all of them.
"""
MOST_SHARES = 100
"""Lines of an answer at most; each line is a number of instances and the hosts with so many."""


class Suppositions:
    """Answers the what-ifs of one scheduler about the head of its ledger. For use from one event loop."""

    def __init__(self, ledger: Ledger, pools: HostPools) -> None:
        self._pools = pools
        turns = ForkedTurns(MOST_WAITING, SECONDS + SECONDS_MORE, MORE_BYTES, SHARE)
        self._answers = ForkedAnswers(ledger, turns, "a what-if question is not answered")

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        """Return how many more instances fit; None if too many what-ifs wait, or if it cannot be found out.

        Raises: `BadRequestSpec`, `SchedulerFault`, `StorageError`, `LedgerError`.
        """

        def answered(fleet: Fleet) -> WhatIf:
            return what_if(fleet, self._pools, supposed, seconds=SECONDS)

        return await self._answers.answer(answered, WhatIf)


def what_if(
    fleet: Fleet,
    pools: HostPools,
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
    time_limit, table = TimeLimit(seconds), pools.table
    node_version = table.version
    changes = Changes(supposed.scenario.without)
    if changes.without:
        pools = HostPools(table, changed_options(pools.options, changes))
    snapshot = FleetSnapshot(fleet, pools)
    request = _suppose(snapshot, supposed)
    fits, refused, binds = 0, False, None
    with snapshot.trying():
        while fits < supposed.limit and not refused and not time_limit.over():
            number = min(BATCH, supposed.limit - fits)
            some = _next(request, number)
            # Cached results pay for so many instances.
            placed = snapshot.decide(some, pool=pools.of_fleet(fleet, some)).destinations
            request = _with_members(request, [each.selected.host for each in placed])
            fits += len(placed)
            refused = len(placed) < number
        if refused:
            binds = explain(snapshot, _next(request, 1), seconds=explaining)
        counted = Counter(snapshot.index_of(claim) for claim in snapshot.claims)
        on = {at: n for at, n in counted.items() if at is not None}
        shares = _shares({host_name(table, at): n for at, n in on.items()})
    return WhatIf(
        fits=fits,
        limited=fits == supposed.limit,
        complete=refused or fits == supposed.limit,
        on_hosts=len(counted),
        hosts=len(table),
        where=shares[:MOST_SHARES],
        shares_left_out=max(0, len(shares) - MOST_SHARES),
        zones=_zones(table, on, pools.options.default_availability_zone),
        binds=binds,
        version=fleet.version,
        node_version=node_version,
    )


def _suppose(snapshot: FleetSnapshot, supposed: Supposition) -> SchedulingRequest:
    """Apply the scenario; returns the request in it, without instances yet."""
    fleet, table = snapshot.fleet, snapshot.table
    spec, options = supposed.spec, supposed.options
    if is_rebuild(spec):
        raise BadRequestSpec("a rebuild takes no further host: how many fit cannot be asked")
    table.seen_since(supposed.now - options.service_down_time)
    # All names are looked up before anything changes: an added host cannot be drained or copied.
    drained = drained_nodes(table, supposed.scenario)
    for more in supposed.scenario.added:
        add_hosts(fleet, table, more)
    # A request may name a drained host. It keeps the name, and does not fit.
    changes = Changes(supposed.scenario.without)
    spec = changed_spec(supposed.spec, changes)
    try:
        queries = changed_queries(
            snapshot.queries(spec, options), supposed.spec, plugins_of(options), changes
        )
    except NoSuchConstraint as error:
        raise BadRequestSpec(str(error)) from error
    drain(table, drained)
    request = SchedulingRequest.of(
        HostRequest(spec, (), min_count=1), queries, snapshot.pools.options, supposed.now
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


def _zones(table: NodeTable, numbers: Mapping[int, int], default: str) -> tuple[ZoneShare, ...]:
    labels = table.metadata(AVAILABILITY_ZONE)
    instances, hosts = Counter[str](), Counter[str]()
    for at, number in numbers.items():
        [zone, *_] = (*(() if labels is None else labels.of(at)), default)
        instances[zone] += number
        hosts[zone] += 1
    return tuple(ZoneShare(zone, instances[zone], hosts[zone]) for zone in sorted(instances))


def _shares(numbers: Mapping[str, int]) -> tuple[Share, ...]:
    names: dict[int, list[str]] = {}
    for name, number in sorted(numbers.items()):
        names.setdefault(number, []).append(name)
    return tuple(
        Share(number, len(of), host_names(of[:MOST_NAMED], max(0, len(of) - MOST_NAMED)))
        for number, of in sorted(names.items(), reverse=True)
    )
