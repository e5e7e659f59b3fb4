"""How the scheduler reaches placement: one small protocol, two ways with the same answers.

local     the ledger is in this process: the whole decision is one command of its transaction
http      a placement service (Roost's or OpenStack's own): candidates, then a claim, next on conflict
foreign_groups  server groups on a service that does not judge their conditions
http_run  one run over HTTP; asked_candidates: what it reads; http_claims: what it claims; hearing: at
          which versions it was told that
explaining  why placement over HTTP has no host: it is asked again with one condition less
claiming  what both do alike
replacing the use of an alternate in the ledger's transaction; replacing_over_http: over HTTP
word_checks operators' words around runs whose claims are not conditional on them
asking    the errors of placement over HTTP
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from roost.model.reasons import Reasons
from roost.model.record import PlacementRead
from roost.model.request import CandidateQuery
from roost.model.what_if import WhatIf
from roost.scheduler.explain.supposition import Supposition
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Outcome
from roost.scheduler.selection.replacement import Replacement, ReplacementRequest
from roost.scheduler.selection.selection import Plugins


class Decided(NamedTuple):
    """An outcome, the ledger's version that it was decided at (None if unknown), and the seconds that the
    decision itself took (filter, weigh, pick, claim prepared; without waiting for the store).

    ``position``: how many changes the commit of the decision had before it; None if unknown.
    ``node_version``: the version of the node table that it was decided on, None without a journal.
    ``told``: over HTTP, the versions of all responses of placement; empty if one named none.
    ``generations``: those of the consumers whose claims were replaced more than once. ``claims``: what was
    chosen is claimed in placement.
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
    """Decides a question and claims what was chosen."""

    async def decide(self, request: SchedulingRequest, table: NodeTable, plugins: Plugins) -> Decided:
        """Choose, claim and find alternates. Claims of a run that is refused, or raises, do not stay.

        Raises `ConcurrentUpdate` if an instance holds something already, or not at the generation that the
        question says, `BadRequestSpec` for a resource
        class or trait that placement does not know.
        """

    async def check(self, queries: Sequence[CandidateQuery]) -> None:
        """Check that placement knows the classes and traits of one of the queries at least.

        Raises `BadRequestSpec` if it does not.
        """

    async def use_alternate(
        self, request: ReplacementRequest, table: NodeTable, plugins: Plugins
    ) -> Replacement:
        """Swap the claim of an instance to the first alternate that passes all checks now.

        Raises `NothingClaimed` if the instance holds nothing, `StaleClaim`, `BadRequestSpec` as `decide`
        does.
        """

    async def explain(
        self,
        request: SchedulingRequest,
        table: NodeTable,
        plugins: Plugins,
        placed: int,
        *,
        newest: bool = False,
    ) -> Reasons | None:
        """Why a question is refused, of which the first ``placed`` instances hold their hosts.

        It is found beside the claims of others, and touches nothing. ``newest``: on the newest version that
        any writer has made, not only on one that this process knows. None if it cannot be found out.
        """

    async def what_if(self, supposed: Supposition, table: NodeTable, plugins: Plugins) -> WhatIf | None:
        """How many more instances of a request fit. Nothing is touched. None if it cannot be found out.

        Raises `BadRequestSpec`, `SchedulerFault`.
        """

    async def aggregates(self, providers: Collection[str]) -> dict[str, frozenset[str]]:
        """The aggregates of each of these providers in placement; none for a provider that there is not."""
