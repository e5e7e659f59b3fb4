"""The candidates of one query on one version, read page by page."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.choices import Choice, FoundChoices
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.placement.wire.candidate_texts import (
    CandidateTexts,
    describe_candidates,
    describe_split_candidates,
    weight_of,
)
from roost.placement.wire.microversions import LATEST
from roost.placement.wire.provider_texts import ProviderTexts

SKIPPED_AT_ONCE = 200
"""Candidates that one call of `CandidateReader.skip` skips at most: other requests run between the calls."""

_encode = msgspec.msgpack.Encoder().encode


class EncodedPage(msgspec.Struct, frozen=True):
    """A page of candidates as JSON.

    ``number``: the number of its candidates. ``next``: the offset of the next page, None on the last one.
    """

    version: int
    number: int
    next: int | None
    requests: bytes
    summaries: bytes

    def packed(self) -> bytes:
        """Return the page as bytes, for transfer from another process."""
        return _encode(self)


unpacked = msgspec.msgpack.Decoder(EncodedPage).decode
"""Decodes the bytes of `EncodedPage.packed`."""


class CandidateReader:
    """The candidates of one query on one version, in their order, read from ``position`` on.

    Candidates are rows of the fleet, which are quicker to write as JSON, unless the query allows a split.
    Reading spends units from the fleet's meter, and raises `TooMuchWork`, after which the reader is unusable.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery, offset: int = 0) -> None:
        search = CandidateSearch(fleet, query)
        self._meter = fleet.meter
        self._needs = search.needs
        self._weight = weight_of(search.needs)
        self.position = 0
        self._split = search.splits
        self._choices: Iterator[Choice | Candidate] = iter(search) if search.splits else search.choices()
        if search.single_provider:
            # Each anchor has one candidate, so those before ``offset`` need not be generated.
            self.position = min(offset, len(search.anchors))
            anchors = search.anchors[self.position :].tolist()
            self._choices = (choice for anchor in anchors for choice in search.choices_at(anchor))
        self._ahead: list[Choice | Candidate] = []

    def describe(self, fleet: Fleet, texts: ProviderTexts, most: int) -> tuple[int, CandidateTexts]:
        """Read the next candidates, ``most`` at most. Returns their number, and them as JSON."""
        found = self.read(most)
        if self._split:
            candidates = [each for each in found if isinstance(each, Candidate)]
            return len(found), describe_split_candidates(fleet, candidates, texts)
        choices = [each for each in found if not isinstance(each, Candidate)]
        return len(found), describe_candidates(fleet, self._needs, FoundChoices(choices), texts, LATEST)

    def read(self, most: int) -> list[Choice | Candidate]:
        """Read the next candidates, ``most`` at most."""
        page = [*self._ahead, *islice(self._choices, most - len(self._ahead))]
        self._meter.spend(len(page) * self._weight)
        self._ahead = page[most:]
        self.position += len(page[:most])
        return page[:most]

    def has_more(self) -> bool:
        """Return whether there is another candidate."""
        if not self._ahead:
            self._ahead = list(islice(self._choices, 1))
        return bool(self._ahead)

    def skip(self, offset: int) -> bool:
        """Skip some of the candidates before ``offset``. Returns False if there are no more candidates."""
        return bool(self.read(min(SKIPPED_AT_ONCE, offset - self.position)))


def page_of(reader: CandidateReader, fleet: Fleet, texts: ProviderTexts, limit: int) -> EncodedPage:
    """Read the next page of a reader. Raises `TooMuchWork`."""
    number, described = reader.describe(fleet, texts, limit)
    more = reader.position if reader.has_more() else None
    requests, summaries = map(b"".join, described)
    return EncodedPage(fleet.version, number, more, requests, summaries)
