"""What plugins declare, what they raise, and what they say about a host's candidates."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pytest

from roost.fleet.columns import Bools, Float64
from roost.model.allocation import Candidate
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import CannotWeigh, SchedulerFault
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_key, ask_weigher, verdict
from roost.scheduler.plugins.plugins import Filter, Named, Weigher, in_order
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import spec
from support.offering import Free, MadeUp, Only, driven, hosts, no_chance, plugins, scheduling_request, select


class Names:
    """A filter with ``named``."""

    name = "names"

    def __init__(self, *indexes: int, allowed: bool) -> None:
        self._said = Named(indexes, allowed)

    def named(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Named:
        return self._said


def view(count: int) -> HostView:
    return HostView(hosts(count), MadeUp([1] * count))


@pytest.mark.parametrize(("allowed", "expected"), [(True, [False, True]), (False, [True, False])])
def test_filter_may_name_hosts(allowed: bool, expected: list[bool]) -> None:
    mask = ask_filter(
        Filter.of(Names(1, 7, allowed=allowed)), view(2), scheduling_request(), GroupPlacement()
    )
    assert mask is not None
    assert mask.tolist() == expected


def test_filters_that_declare_are_asked_first_and_those_that_depend_on_claims_last() -> None:
    class Declares(Only):
        looks_at = Looks.REPORT

    class Again(Only):
        depends_on_claims = True

    foreign, again, names, declares = Only(0), Again(0), Names(0, allowed=True), Declares(0)
    found = in_order(map(Filter.of, [again, foreign, names, declares]))
    assert [each.plugin for each in found] == [declares, names, foreign, again]


def test_filter_without_a_key_for_a_request_is_not_asked() -> None:
    class OfSsd(Only):
        def key(self, request: SchedulingRequest) -> Hashable | None:
            return request.spec.flavor.extra_specs.get("ssd")

        def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
            assert request.spec.flavor.extra_specs
            return super().mask(hosts, request, progress)

    assert verdict(Filter.of(OfSsd(0)), view(2), scheduling_request(), GroupPlacement()) is None
    mask = verdict(
        Filter.of(OfSsd(0)),
        view(2),
        scheduling_request(of=spec(extra_specs={"ssd": "yes"})),
        GroupPlacement(),
    )
    assert mask is not None
    assert mask.tolist() == [True, False]
    outcome, _ = driven(select(scheduling_request(), hosts(2), MadeUp([1, 2]), plugins(OfSsd(0)), no_chance))
    assert [each.selected.host for each in outcome.destinations] == ["host1"]


@pytest.mark.parametrize("bad", range(5))
def test_fault_names_plugin_host_and_error(bad: int) -> None:
    class Fails(Only):
        def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
            if bad in hosts.index:
                raise KeyError("memory")
            return None

    text = f"filter only failed on host host{bad}: KeyError: 'memory'"
    with pytest.raises(SchedulerFault, match=text) as error:
        ask_filter(Filter.of(Fails()), view(5), scheduling_request(), GroupPlacement())
    assert isinstance(error.value.__cause__, KeyError)


def test_error_that_no_single_host_causes_names_none() -> None:
    class Fails(Only):
        def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
            if len(hosts) > 3:
                raise OverflowError("too many")
            return None

    with pytest.raises(SchedulerFault, match="filter only failed: OverflowError: too many"):
        ask_filter(Filter.of(Fails()), view(4), scheduling_request(), GroupPlacement())


def _weigher(answer: Callable[[HostView], Any]) -> Weigher:
    class Answers(Free):
        def raw(
            self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
        ) -> Float64 | None:
            return answer(hosts)  # type: ignore[no-any-return]

    return Weigher.of(Answers())


def test_answers_of_the_wrong_form_are_faults() -> None:
    class Wrong(Only):
        def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Any:
            return np.ones(len(hosts))

    with pytest.raises(SchedulerFault, match="filter only failed on host host0: TypeError: a mask"):
        ask_filter(Filter.of(Wrong()), view(2), scheduling_request(), GroupPlacement())
    with pytest.raises(SchedulerFault, match="weigher free failed on host host0: TypeError: numbers of"):
        ask_weigher(_weigher(lambda hosts: np.zeros(7)), view(2), scheduling_request(), GroupPlacement())


def test_weigher_may_say_that_the_request_must_fail() -> None:
    def cannot(hosts: HostView) -> None:
        raise CannotWeigh("no number")

    with pytest.raises(CannotWeigh):
        ask_weigher(_weigher(cannot), view(2), scheduling_request(), GroupPlacement())


def test_key_must_be_hashable() -> None:
    class Keyed(Only):
        def key(self, request: SchedulingRequest) -> Any:
            return [1]

    with pytest.raises(SchedulerFault, match="filter only failed: TypeError: unhashable type"):
        ask_key(Filter.of(Keyed()), scheduling_request())


class Drops(Only):
    """Lets no candidate by the first way through, and turns the others round."""

    def narrow(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[Candidate]:
        assert host.level(candidates[0].root, "VCPU") == (2, 0)
        return [each for each in reversed(candidates) if each.mappings[""] != ["way0"]]


class Ranks(Free):
    """Likes one way best."""

    def __init__(self, best: str) -> None:
        self._best = best

    def rank(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[float]:
        return [float(each.mappings[""] == [self._best]) for each in candidates]


def _way(filters: list[Only], weighers: list[Free], of: RequestSpec | None = None) -> list[str] | None:
    chosen = plugins(*filters, weighers=weighers)
    asked = scheduling_request(of=of)
    outcome, _ = driven(select(asked, hosts(1), MadeUp([2], [4]), chosen, no_chance))
    return outcome.destinations[0].selected.mappings[""] if outcome.destinations else None


def test_plugins_drop_and_order_the_candidates_of_a_host() -> None:
    assert _way([], [Free()]) == ["way0"]
    assert _way([Drops(0)], [Free()]) == ["way3"]
    assert _way([], [Ranks("way2")]) == ["way2"]
    assert _way([Drops(0)], [Ranks("way0")]) == ["way3"]
    assert _way([Drops(0)], [Ranks("way1"), Ranks("way2"), Ranks("way2")]) == ["way2"]


def test_host_without_candidates_left_is_passed_over() -> None:
    class DropsAll(Only):
        def narrow(
            self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
        ) -> list[Candidate]:
            return [] if host.name == "host1" else list(candidates)

    outcome, _ = driven(
        select(scheduling_request(), hosts(2), MadeUp([1, 2]), plugins(DropsAll(0, 1)), no_chance),
    )
    assert [each.selected.host for each in outcome.destinations] == ["host0"]


def test_fault_in_narrowing_and_ranking_names_the_host() -> None:
    class Fails(Only):
        def narrow(self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest) -> Any:
            raise ValueError("no")

    class Wrong(Free):
        def rank(
            self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
        ) -> list[float]:
            return [0.0]

    table, offers = hosts(1), MadeUp([2], [4])
    one = OneHost(table, offers, 0, offers.level)
    with pytest.raises(SchedulerFault, match="filter only failed on host host0: ValueError: no"):
        CandidateOrder([Filter.of(Fails())], [], scheduling_request()).of(one, offers.candidates(0))
    with pytest.raises(SchedulerFault, match="weigher free failed on host host0: TypeError: 1 numbers for 4"):
        CandidateOrder([], [Weigher.of(Wrong())], scheduling_request()).of(one, offers.candidates(0))
