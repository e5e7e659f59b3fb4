"""Answers of placement that serve for some seconds: the caching scheduler.

Reading all candidates from a placement service costs more than the rest of a decision. Where hosts change
slowly, an answer that is some seconds old is good enough: placement judges each claim anyway.
"""

import msgspec

from roost.model.allocation import Candidate
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Outcome

MOST_ANSWERS = 64
"""Answers kept; one more drops the oldest."""

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class _Answer(msgspec.Struct):
    candidates: FetchedCandidates
    structure: int
    until: float


class CachedAnswers:
    """The answers of the last ``host_list_seconds``, by query; with 0 seconds none is kept.

    The claims of this process are taken off all answers. An answer is dropped when a claim based on it was
    refused, or when its run placed nothing.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer] = {}

    def of(self, request: SchedulingRequest, table: NodeTable) -> FetchedCandidates | None:
        """Return the answer to a request's queries; None if placement must be read."""
        if not request.options.host_list_seconds:
            return None
        answer = self._answers.get(_encode(request.queries))
        if answer is None or answer.structure != table.structure or answer.until <= request.monotonic():
            return None
        return answer.candidates

    def keep(self, request: SchedulingRequest, table: NodeTable, candidates: FetchedCandidates) -> None:
        """Keep an answer that was read just now."""
        seconds = request.options.host_list_seconds
        if not seconds:
            return
        key = _encode(request.queries)
        self._answers.pop(key, None)
        self._answers[key] = _Answer(candidates, table.structure, request.monotonic() + seconds)
        if len(self._answers) > MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]

    def decided(self, request: SchedulingRequest, outcome: Outcome | None) -> None:
        """Note the outcome of a run on an answer; None: it raised."""
        if not self._answers:
            return
        key = _encode(request.queries)
        refused = outcome is None or any(tried.refusal is not None for tried in outcome.tries)
        if outcome is None or refused or not outcome.destinations:
            self._answers.pop(key, None)
        for one in outcome.destinations if outcome is not None else ():
            selected = one.selected
            candidate = Candidate(selected.node, selected.allocations, selected.mappings)
            for other, answer in self._answers.items():
                if other != key:
                    answer.candidates.claimed(candidate)
