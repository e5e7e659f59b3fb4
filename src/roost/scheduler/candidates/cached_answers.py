"""Answers of placement that serve for some seconds: the caching scheduler.

To ask a placement service for all candidates costs more than the rest of a decision. Where hosts change
slowly, an answer that is some seconds old does: placement judges each claim anyway.
"""

import msgspec

from roost.model.allocation import Candidate
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.outcome import Outcome

MOST_ANSWERS = 64
"""Answers that are kept. The one that was asked for first goes first."""

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class _Answer(msgspec.Struct):
    offers: FetchedCandidates
    structure: int
    until: float


class CachedAnswers:
    """The answers of the last ``host_list_seconds``, by query; with 0 seconds none is kept.

    The claims of this process are taken off all answers. An answer by which a claim was refused, or whose run
    came to nothing, is not used again.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer] = {}

    def of(self, request: SchedulingRequest, table: NodeTable) -> FetchedCandidates | None:
        """The answer to a question's query, None if placement is to be asked."""
        if not request.options.host_list_seconds:
            return None
        answer = self._answers.get(_encode(request.queries))
        if answer is None or answer.structure != table.structure or answer.until <= request.monotonic():
            return None
        return answer.offers

    def keep(self, request: SchedulingRequest, table: NodeTable, offers: FetchedCandidates) -> None:
        """Keep an answer that was read just now."""
        seconds = request.options.host_list_seconds
        if not seconds:
            return
        key = _encode(request.queries)
        self._answers.pop(key, None)
        self._answers[key] = _Answer(offers, table.structure, request.monotonic() + seconds)
        if len(self._answers) > MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]

    def decided(self, request: SchedulingRequest, outcome: Outcome | None) -> None:
        """Take note of what a run on an answer came to; None: it raised."""
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
                    answer.offers.claimed(candidate)
