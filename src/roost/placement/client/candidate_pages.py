"""The candidates of a query, read from a placement service on demand."""

from collections.abc import Sequence
from typing import Protocol

from roost.model.request import CandidateQuery
from roost.placement.client.bodies import FetchedPage
from roost.placement.errors import PlacementError
from roost.placement.interface import AllocationRequest, ProviderSummary
from roost.web.query import LARGEST_PAGE

_GONE = 410
"""HTTP status: the ledger version of the pages read so far cannot be rebuilt."""


class Candidates(Protocol):
    """A source of candidates. `roost.placement.client.HttpPlacement` implements and documents it."""

    async def candidates(
        self, query: CandidateQuery, limit: int | None = None
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]: ...

    async def candidate_page(
        self, query: CandidateQuery, limit: int, cursor: str | None
    ) -> FetchedPage | None: ...


class CandidatePages:
    """The first candidates of a query, and more on demand.

    Roost has pages, all of one version. A service without pages is asked again with a higher limit, and its
    new response replaces the one before.

    ``requests`` and ``summaries``: candidates and providers read so far. ``complete``: there are no more.
    """

    def __init__(self, placement: Candidates, query: CandidateQuery, limit: int | None) -> None:
        self._placement = placement
        self._query = query
        self._first = limit
        self._cursor: str | None = None
        self.requests: Sequence[AllocationRequest] = ()
        self.summaries: dict[str, ProviderSummary] = {}
        self.complete = False

    async def read_to(self, wanted: int | None) -> None:
        """Read on until ``wanted`` candidates are read (None: all), or there are no more.

        Raises: as `HttpPlacement.candidates`.
        """
        if self.complete:
            return
        # The first candidates are read alike from every service, and mostly they suffice.
        if wanted is not None and wanted != self._first and await self._has_turned_pages(wanted):
            return
        self.requests, self.summaries = await self._placement.candidates(self._query, wanted)
        self.complete = wanted is None or len(self.requests) < wanted

    async def _has_turned_pages(self, wanted: int) -> bool:
        try:
            return await self._turn_pages(wanted)
        except PlacementError as error:
            if error.status != _GONE or self._cursor is None:
                raise
        self._cursor = None
        return await self._turn_pages(wanted)

    async def _turn_pages(self, wanted: int) -> bool:
        """Read on from the last page; False if the service has no pages."""
        found = [] if self._cursor is None else [*self.requests]
        summaries = {} if self._cursor is None else self.summaries
        while len(found) < wanted:
            limit = min(wanted - len(found), LARGEST_PAGE)
            page = await self._placement.candidate_page(self._query, limit, self._cursor)
            if page is None:
                return False
            found += page.requests
            summaries |= page.summaries
            self._cursor = page.next
            if page.next is None:
                self.complete = True
                break
        self.requests, self.summaries = found, summaries
        return True
