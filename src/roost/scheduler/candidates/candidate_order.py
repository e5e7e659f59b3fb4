"""The order in which a host's allocation candidates are claimed: filters drop and order them, weighers rank
them."""

from collections.abc import Iterator, Sequence
from itertools import islice

from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import OneHost
from roost.scheduler.plugins.plugin_calls import ask_key, ask_to_narrow, ask_to_rank
from roost.scheduler.plugins.plugins import Filter, Plugin, Weigher, in_order
from roost.scheduler.pool.weights import multiplier_of
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_CANDIDATES = 1_000
"""Candidates of one host that plugins get. Where a plugin orders candidates, further ones are not claimed."""


class CandidateOrder:
    """Orders the candidates of single hosts by the filters and weighers that apply to one request."""

    def __init__(
        self, filters: Sequence[Filter], weighers: Sequence[Weigher], request: SchedulingRequest
    ) -> None:
        self._request = request
        narrowing = [each for each in filters if each.narrow is not None]
        self._narrowing = [each for each in in_order(narrowing) if self._judges(each)]
        self._ranking = [each for each in weighers if each.rank is not None and self._judges(each)]
        self.matters = bool(self._narrowing or self._ranking)

    def of(self, host: OneHost, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        """Return a host's candidates, best first.

        Raises: `SchedulerFault`.
        """
        listed: Sequence[Candidate] = list(islice(candidates, MOST_CANDIDATES))
        for plugin in self._narrowing:
            if not listed:
                break
            listed = ask_to_narrow(plugin, host, listed, self._request)
        if len(listed) > 1:
            listed = self._ranked(host, listed)
        return iter(listed)

    def _ranked(self, host: OneHost, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        totals = [0.0] * len(candidates)
        for plugin in self._ranking:
            numbers = ask_to_rank(plugin, host, candidates, self._request)
            if numbers is None or min(numbers) == max(numbers):
                continue
            multiplier = multiplier_of(host, plugin, self._request)
            factor = multiplier if isinstance(multiplier, float) else multiplier.item(0)
            least, span = min(numbers), max(numbers) - min(numbers)
            totals = [
                total + factor * (number - least) / span
                for total, number in zip(totals, numbers, strict=True)
            ]
        # A stable sort: of equal candidates the first stays first.
        order = sorted(range(len(candidates)), key=lambda at: -totals[at])
        return [candidates[at] for at in order]

    def _judges(self, plugin: Plugin) -> bool:
        return ask_key(plugin, self._request) is not None
