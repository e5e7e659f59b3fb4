"""Gateways to placement: one protocol, two implementations with the same answers.

local                 the ledger is in this process: a whole decision is one command of its transaction
http                  a placement service, Roost's or OpenStack's own, over HTTP
http_run              one run: read candidates, choose, claim, read more candidates
http_claims           the claims of one run
claim_writes          the writes of claims, and claims taken back from instances that held something
http_replacement      the use of an alternate
http_explanation      why such a service has no host, by what it answers to the request
unclaimed             decisions without a claim, with the verdict on each host
recording_placement   records at which ledger versions a run read placement
node_assignments      the assignments on nodes during one run
foreign_groups        server groups at a service that does not judge their conditions
missing_providers     reporting nodes without a provider in placement, and refusals that name them
word_checks           operators' words around runs whose claims are not conditional on them
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from roost.model.reasons import Reasons
from roost.model.record import PlacementRead
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.scheduler.explain.scenario import Supposition
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest


class Decided(NamedTuple):
    """An outcome, and the state that it was decided on.

    ``version``: of the ledger, None if unknown. ``seconds``: time of the decision itself (filter, weigh,
    pick, prepare the claim), without waiting for the store. ``position``: how many changes the commit of the
    decision had before it; None if unknown. ``node_version``: of the node table, None without a journal.
    ``told``: over HTTP, the versions of all responses of placement; empty if one named none. ``generations``:
    over HTTP, the present ones of the consumers that held something before. ``claims``: whether the chosen
    hosts are claimed in placement.
    """

    outcome: Outcome
    version: int | None
    seconds: float
    position: int | None = None
    node_version: int | None = None
    told: tuple[PlacementRead, ...] = ()
    generations: Mapping[str, int] = {}
    claims: bool = True


class Gateway(Protocol):
    """Decides scheduling requests and claims the chosen hosts.

    ``pools``: what it chooses hosts from and by.
    """

    @property
    def pools(self) -> HostPools: ...

    async def decide(self, request: SchedulingRequest) -> Decided:
        """Choose, claim and find alternates. Claims of a run that is refused, or raises, do not stay.

        Raises:
            ConcurrentUpdate: an instance holds something already, or not at the generation in the request.
            BadRequestSpec: placement does not know a resource class or trait.
        """

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        """Check that placement knows the classes and traits of at least one of the queries.

        Raises:
            BadRequestSpec: it does not.
        """

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        """Swap the claim of an instance to the first alternate that passes all checks now.

        Raises:
            NothingClaimed: the instance holds nothing.
            StaleClaim: others have moved its claim.
            BadRequestSpec: as `decide`.
        """

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        """Return why a request is refused whose first ``placed`` instances hold their hosts.

        The reasons are found beside the claims of others, and nothing is changed. ``newest``: on the newest
        version that any writer has made, not only on one that this process knows. ``moves``: up to so many
        instances are looked for that could move so that it fits, where the ledger and the cells' databases
        can be read. None: they cannot be found out.
        """

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        """Return how many more instances of a request fit; None if it cannot be found out. Nothing is
        changed.

        Raises: `BadRequestSpec`, `SchedulerFault`.
        """

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        """Return the waves of a maintenance; None if it cannot be planned here, or now. Nothing is changed.

        ``now``: seconds since the epoch. Raises: `BadRequestSpec`, `SchedulerFault`.
        """

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the aggregates of each of these providers in placement; none for a provider that does not
        exist."""


class GatewayWrapper:
    """Passes all calls on to another gateway; each wrapper changes some of them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def pools(self) -> HostPools:
        return self._gateway.pools

    async def decide(self, request: SchedulingRequest) -> Decided:
        return await self._gateway.decide(request)

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        await self._gateway.check(queries)

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        return await self._gateway.use_alternate(request)

    async def explain(
        self, request: SchedulingRequest, placed: int, *, newest: bool = False, moves: int = 0
    ) -> Reasons | None:
        return await self._gateway.explain(request, placed, newest=newest, moves=moves)

    async def what_if(self, supposed: Supposition) -> WhatIf | None:
        return await self._gateway.what_if(supposed)

    async def plan(self, wanted: WantedPlan, now: float) -> MaintenancePlan | None:
        return await self._gateway.plan(wanted, now)

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        return await self._gateway.aggregates(providers)
