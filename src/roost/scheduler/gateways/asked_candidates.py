"""The candidates of a request at a placement service, read as far as the run needs them."""

from roost.placement.client.candidate_pages import CandidatePages
from roost.placement.errors import BadRequest
from roost.scheduler.candidates.cached_answers import CachedAnswers
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.claim_result import named, translated


class AskedCandidates:
    """The candidates of a request's queries.

    At first those of a cached answer, or ``request.limit`` of each query, or all without a limit. ``bound``:
    option and value of the limit that ended the reading, None before. ``known``: the number of hosts read.
    """

    def __init__(
        self, placement: RunPlacement, request: SchedulingRequest, table: NodeTable, cached: CachedAnswers
    ) -> None:
        self._request = request
        self._table = table
        self._cached = cached
        self._answer = cached.of(request, table)
        self._pages = [CandidatePages(placement, query, request.limit) for query in request.queries]
        self._read = 0
        self.known = 0
        self.bound: str | None = None

    async def fetched(self) -> FetchedCandidates:
        """Return the candidates read so far, without any claim of this run. Raises: as `read_on`."""
        answer, self._answer = self._answer, None
        if answer is None:
            if not self._read:
                await self._read_to(self._request.limit)
            requests = [request for pages in self._pages for request in pages.requests]
            summaries = {uuid: each for pages in self._pages for uuid, each in pages.summaries.items()}
            answer = FetchedCandidates(requests, summaries, self._table)
            self._cached.keep(self._request, self._table, answer)
        self.known = len(answer.index)
        return answer

    async def read_on(self) -> bool:
        """Read twice as many candidates; False if there are no more, or the bound is met.

        Raises:
            BadRequestSpec: Placement does not know a resource class or trait of the query.
            PlacementUnavailable, PlacementRefused: Placement returns no candidates.
        """
        limit = self._request.limit
        if limit is None or (self._read and all(pages.complete for pages in self._pages)):
            return False
        most = self._request.options.request_filters.max_paged_placement_results
        wanted = 2 * (self._read or limit)
        if most:
            if self._read >= most:
                self.bound = f"max_paged_placement_results={most}"
                return False
            wanted = min(wanted, most)
        await self._read_to(wanted)
        return True

    def were_wrong(self) -> None:
        """Drop the cached answer, because placement refused a claim that is based on it."""
        self._cached.decided(self._request, None)

    async def _read_to(self, wanted: int | None) -> None:
        for pages in tuple(self._pages):
            try:
                await translated(pages.read_to(wanted))
            except BadRequest as error:
                # A query for a class that no host has finds nothing; another query may be served.
                if len(self._pages) == 1:
                    raise BadRequestSpec(f"placement cannot serve the request: {named(error)}") from error
                self._pages.remove(pages)
        self._read = max(wanted or 0, 1)
