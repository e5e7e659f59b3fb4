"""Which poll brings which results: each is brought once; what is quickly done costs no poll of its own."""

from collections.abc import Coroutine
from typing import Any

import pytest

from roost.agent.outbox import Outbox
from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import Build, Destroyed, SessionKey
from roost.agent.workload import AgentWorkload
from roost.model.instance import BuildResult
from support.cells import instance
from support.stepped_contexts import SteppedContext

SECONDS = 0.5


@pytest.fixture
def context() -> SteppedContext:
    return SteppedContext()


@pytest.fixture
def work(context: SteppedContext) -> AgentWorkload:
    return AgentWorkload(context, "a", "topic", lambda *_: None, start_seconds=5.0, retry_seconds=1.0)


@pytest.fixture
def outbox(context: SteppedContext, work: AgentWorkload) -> Outbox:
    return Outbox(context, work, "topic", SECONDS)


def begin(work: AgentWorkload, uuid: str) -> None:
    """Begin a build; nothing of it is done."""
    work.take(Build(instance(uuid), 60.0), asked=0.0, counter=1)


def done(work: AgentWorkload, uuid: str) -> BuildResult:
    work.unstored.builds[uuid, 1] = result = BuildResult(uuid, "a", 1)
    work._current.pop(uuid, None)
    return result


def poll(outbox: Outbox) -> Poll:
    contents = outbox.contents(waits=True)
    return Poll(session=SessionKey("a", "nonce", 1), counter=1, **contents._asdict())


def test_what_the_waiting_poll_has_brought_is_not_brought_again(work: AgentWorkload, outbox: Outbox) -> None:
    """The endpoint would count it twice, and ask for all guests."""
    first = done(work, "i")
    work.unstored.destroyed["j", 2] = Destroyed("j", 2, None)
    outbox.waits(poll(outbox))
    assert not outbox.is_pressing
    second = done(work, "k")
    assert outbox.is_pressing
    assert outbox.contents(waits=False) == ((second,), (), ())
    # The answer to it is lost: the next one has all.
    outbox.waits(None)
    assert outbox.contents(waits=True) == ((first, second), (Destroyed("j", 2, None),), ())
    assert outbox.is_pressing


def waits(gathering: Coroutine[Any, Any, None], answer: bool | None = None) -> float:
    """Go on with the answer to a wait; return the seconds of the next one."""
    [seconds] = gathering.send(answer).arguments
    return float(seconds)


def test_the_poll_waits_for_what_was_ordered_last_and_no_longer(work: AgentWorkload, outbox: Outbox) -> None:
    begin(work, "long")
    begin(work, "i")
    outbox.begins("i")
    gathering = outbox.gather()
    assert waits(gathering) == SECONDS
    assert not outbox.is_pressing
    done(work, "i")
    assert not outbox.is_pressing, "the poll that comes next brings it"
    with pytest.raises(StopIteration):
        gathering.send(True)
    assert outbox.is_pressing


def test_the_poll_waits_so_long_at_most(context: SteppedContext, work: AgentWorkload, outbox: Outbox) -> None:
    begin(work, "i")
    outbox.begins("i")
    gathering = outbox.gather()
    assert waits(gathering) == SECONDS
    context.now += 0.1
    assert waits(gathering, False) == pytest.approx(SECONDS - 0.1)
    context.now = SECONDS
    with pytest.raises(StopIteration):
        gathering.send(False)


def test_the_poll_does_not_wait_where_things_take_longer(work: AgentWorkload, outbox: Outbox) -> None:
    work.took = 2 * SECONDS
    begin(work, "i")
    outbox.begins("i")
    assert list(outbox.gather().__await__()) == []
