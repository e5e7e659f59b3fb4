"""Operators' words around runs whose claims cannot be conditional on them: look, claim, look again."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from roost.model.node_event import AggregateRemoved, MembershipsSet, NodeEvent, WordSaid
from roost.model.operator_word import Subject
from roost.model.spec import Destination, Flavor, RequestSpec, Selection
from roost.scheduler import Scheduler
from roost.scheduler.errors import ClaimsInDoubt, PlacementUnavailable
from roost.scheduler.gateways import Decided
from roost.scheduler.gateways.word_checks import TAKEN_AWAY, WordCheckedGateway
from roost.scheduler.nodes.operator_words import OperatorWords, TakenWords
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import ClaimAttempt, Outcome
from roost.scheduler.selection.replacement import AlternateRequest, Replacement, ReplacementRequest

NODE = Subject("cell1", "a", "node-a")
SPEC = RequestSpec(project_id="p", user_id="u", flavor=Flavor("f", 1, 0))


class Nobody:
    """Records nothing."""

    def put(self, *_: object) -> None: ...


class Placement:
    """Claims node-a each time. ``meanwhile``: what operators say while each claim is made."""

    def __init__(self, said: list[NodeEvent], meanwhile: Sequence[NodeEvent | None]) -> None:
        self.pools = HostPools(NodeTable())
        self.said = said
        self.meanwhile = list(meanwhile)
        self.held: list[str] = []
        self.given_back = 0
        self.forgotten = 0
        self.failed: list[str] = []
        self.away: Exception | None = None

    async def decide(self, request: SchedulingRequest) -> Decided:
        event = self.meanwhile.pop(0)
        if event is not None:
            self.said.append(event)
        self.held += request.instances
        selected = Selection(host="a", node="node-a", cell="cell1", allocations={}, mappings={}, weight=0.0)
        found = tuple(Destination(request.run, each, selected, ()) for each in request.instances)
        return Decided(Outcome(found, (), (), None), None, 0.0)

    async def use_alternate(self, request: ReplacementRequest) -> Replacement:
        """Claim the next alternate, which is judged by the newest word."""
        event = self.meanwhile.pop(0)
        if event is not None:
            self.said.append(event)
        first, *left = request.alternates
        self.failed.append(request.failed.host)
        tried = ClaimAttempt(request.instance, first.host, first.node, first.cell, 0.0, None)
        return Replacement(selected=first, alternates=tuple(left), tries=(tried,))

    async def give_back(self, request: SchedulingRequest) -> dict[str, int]:
        if self.away is not None:
            raise self.away
        self.given_back += 1
        self.held = [each for each in self.held if each not in request.instances]
        return {}

    def forget_answers(self) -> None:
        self.forgotten += 1


def opened(
    *meanwhile: NodeEvent | None, only_before: bool = False
) -> tuple[Placement, OperatorWords, Scheduler]:
    """A scheduler at a placement, during whose claims operators say something, and its operators' words."""
    said: list[NodeEvent] = []

    async def read() -> Sequence[NodeEvent]:
        new = [*said]
        said.clear()
        return new

    placement = Placement(said, meanwhile)
    words = OperatorWords(read)
    gateway: Any = WordCheckedGateway(placement, words, only_before=only_before)  # type: ignore[arg-type]
    scheduler = Scheduler(gateway, Nobody(), lambda: 1.0, words=words)
    return placement, words, scheduler


def scheduled(*meanwhile: NodeEvent | None) -> Placement:
    """Placement after one run, during whose claims operators said something."""
    placement, _, scheduler = opened(*meanwhile)
    asyncio.run(scheduler.select_destinations(HostRequest(SPEC, ("i",))))
    return placement


@pytest.mark.parametrize(
    "event",
    [
        WordSaid("cell1", "a", "", False),
        WordSaid("cell1", "", "", False),
        WordSaid(*NODE, False),
        MembershipsSet("node-a", ("zone",)),
        AggregateRemoved("zone"),
    ],
)
def test_claim_that_a_word_concerns_is_given_back_and_decided_anew(event: NodeEvent) -> None:
    placement = scheduled(event, None)
    assert placement.given_back == 1
    assert placement.held == ["i"]
    assert not placement.meanwhile


@pytest.mark.parametrize(
    "event", [None, WordSaid("cell1", "b", "", False), MembershipsSet("node-b", ("zone",))]
)
def test_claim_that_no_word_concerns_stays(event: NodeEvent | None) -> None:
    placement = scheduled(event)
    assert placement.given_back == 0
    assert placement.held == ["i"]


def test_word_that_comes_during_a_run_counts_for_the_next_one_where_it_is_read_before_only() -> None:
    async def run() -> None:
        placement, words, scheduler = opened(WordSaid("cell1", "a", "", False), None, only_before=True)
        await scheduler.select_destinations(HostRequest(SPEC, ("i1",)))
        assert (placement.given_back, placement.held, words.taken.events) == (0, ["i1"], 0)
        await scheduler.select_destinations(HostRequest(SPEC, ("i2",)))
        assert words.taken.events == 1

    asyncio.run(run())


def test_claim_that_cannot_be_looked_at_again_is_given_back() -> None:
    said: list[NodeEvent] = []
    placement = Placement(said, [None])

    async def read() -> Sequence[NodeEvent]:
        if placement.held:
            raise OSError("the database is away")
        return ()

    words = OperatorWords(read)
    gateway: Any = WordCheckedGateway(placement, words)  # type: ignore[arg-type]
    scheduler = Scheduler(gateway, Nobody(), lambda: 1.0, words=words)
    with pytest.raises(Exception, match="the database is away"):
        asyncio.run(scheduler.select_destinations(HostRequest(SPEC, ("i",))))
    assert not placement.held


def test_claims_that_cannot_be_given_back_are_in_doubt() -> None:
    placement, _, scheduler = opened(WordSaid("cell1", "a", "", False))
    placement.away = PlacementUnavailable("placement is away")
    with pytest.raises(ClaimsInDoubt, match="what i may have claimed could not be freed: placement is away"):
        asyncio.run(scheduler.select_destinations(HostRequest(SPEC, ("i",))))


def test_answers_that_are_older_than_a_word_are_forgotten_whoever_takes_it_in() -> None:
    async def run() -> None:
        placement, words, scheduler = opened(None, None, None)
        await scheduler.select_destinations(HostRequest(SPEC, ("i1",)))
        assert placement.forgotten == 0
        placement.said.append(MembershipsSet("node-b", ("isolated",)))
        await words.look()
        for instance in ("i2", "i3"):
            await scheduler.select_destinations(HostRequest(SPEC, (instance,)))
        assert placement.forgotten == 1

    asyncio.run(run())


def test_alternate_that_a_word_concerns_has_failed_and_the_next_is_judged_by_the_word() -> None:
    async def run() -> None:
        placement, _, scheduler = opened(AggregateRemoved("zone"), None)
        failed, *alternates = (
            Selection(host=each, node=f"node-{each}", cell="c", allocations={}, mappings={}, weight=0.0)
            for each in "abcd"
        )
        found = await scheduler.use_alternate(
            AlternateRequest(
                SPEC, "i", failed, tuple(alternates), reason="no IP", run="run", request_id="req"
            )
        )
        assert found.selected is not None
        assert found.selected.host == "c"
        assert [each.host for each in found.alternates] == ["d"], "one word uses up one alternate"
        assert [(each.host, each.refusal) for each in found.tries] == [("b", TAKEN_AWAY), ("c", None)]
        assert placement.failed == ["a", "b"], "the claim is swapped from where it is"

    asyncio.run(run())


async def turns() -> None:
    """Have all tasks go on as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("end", [OSError("away"), asyncio.CancelledError()])
def test_no_look_passes_for_a_read_that_has_not_ended_well(end: BaseException) -> None:
    async def run() -> None:
        reads: list[asyncio.Future[Sequence[NodeEvent]]] = []

        async def read() -> Sequence[NodeEvent]:
            reads.append(asyncio.get_running_loop().create_future())
            return await reads[-1]

        words = OperatorWords(read)
        looks = [asyncio.create_task(words.look()) for _ in range(4)]
        await turns()
        # The first began before the others asked; the second is that which they share.
        reads[0].set_result(())
        await turns()
        assert len(reads) == 2
        if isinstance(end, Exception):
            reads[1].set_exception(end)
            ended = await asyncio.gather(*looks, return_exceptions=True)
            assert [type(each) for each in ended[1:]] == [OSError] * 3
            assert len(reads) == 2, "they do not wait for it one after the other"
            return
        looks[1].cancel()
        await turns()
        assert len(reads) == 3
        reads[2].set_result((WordSaid("cell1", "a", "", False),))
        await asyncio.gather(*looks[2:])
        assert words.taken.events == 1

    asyncio.run(run())


def test_more_events_than_are_kept_concern_everybody() -> None:
    many: list[NodeEvent] = [MembershipsSet(f"node-{number}", ()) for number in range(2_000)]

    async def run() -> None:
        async def read() -> Sequence[NodeEvent]:
            return many

        words = OperatorWords(read)
        await words.take(7)
        assert words.taken == TakenWords(7, 2_000)
        assert words.concern(TakenWords(), [Subject("c", "h", "n")])
        assert not words.concern(TakenWords(7, 1_500), [Subject("c", "h", "n")])

    asyncio.run(run())
