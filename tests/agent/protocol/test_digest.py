"""The digest of guests follows guests that come and go, in any order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agent.protocol.questions import Confirm, Poll
from roost.agent.protocol.types import (
    EMPTY,
    SIZE,
    Build,
    Destroy,
    Order,
    PowerResult,
    SessionKey,
    StartGuest,
    StopGuest,
    digest_of,
    part_of,
)
from roost.agent.protocol.wire import ROUTES
from roost.model.instance import ASSIGNED, Instance

GUESTS = st.sets(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3)), max_size=8)


@given(GUESTS, GUESTS)
def test_digest_follows_what_comes_and_goes(before, after) -> None:
    came, gone = sum(map(part_of, after - before)), sum(map(part_of, before - after))
    assert (digest_of(before) + came - gone) % SIZE == digest_of(after)
    assert (digest_of(before) == digest_of(after)) == (before == after)


def test_host_without_guests_has_the_empty_digest() -> None:
    assert digest_of([]) == EMPTY


def test_orders_are_told_apart_on_the_wire() -> None:
    wanted = Instance(
        uuid="i", request_id="r", run="u", project_id="p", user_id="u", flavor="f", state=ASSIGNED, attempt=2
    )
    orders: tuple[Order, ...] = (Build(wanted, 60.0), Destroy("j", 1), StopGuest("j", 1), StartGuest(wanted))
    assert [(order.kind, *order.key) for order in orders] == [
        ("build", "i", 2),
        ("destroy", "j", 1),
        ("stop", "j", 1),
        ("start", "i", 2),
    ]
    assert msgspec.json.decode(msgspec.json.encode(orders), type=tuple[Order, ...]) == orders


def test_a_poll_without_stops_and_starts_is_that_of_earlier_versions() -> None:
    key = SessionKey("a", "nonce", 1)
    poll = Poll(session=key, counter=1)
    assert msgspec.json.decode(msgspec.json.encode(poll)).keys() == {"session", "counter"}
    told = msgspec.structs.replace(
        poll, powered=(PowerResult("i", 1, True), PowerResult("j", 2, False, "no")), stopping=(("k", 1),)
    )
    assert msgspec.json.decode(msgspec.json.encode(told), type=Poll) == told


def test_a_confirmation_may_be_asked_and_answered_as_before_or_wait() -> None:
    before = b'{"session":{"host":"a","nonce":"n","epoch":1},"instance":"i","attempt":1}'
    assert msgspec.json.decode(before, type=Confirm).waits is False
    [answer] = [route.answer for route in ROUTES if route.question is Confirm]
    found = [msgspec.json.decode(text, type=answer) for text in (b"true", b"false", b"null")]
    assert found == [True, False, None]
    for text in (b"1", b'"true"', b"{}"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=answer)


@pytest.mark.parametrize(
    "text",
    [
        b'[{"type":"StopGuest","instance":"i"}]',
        b'[{"type":"StopGuest","instance":"i","attempt":"1"}]',
        b'[{"type":"StartGuest","instance":"i","attempt":1}]',
        b'[{"type":"PauseGuest","instance":"i","attempt":1}]',
    ],
)
def test_orders_that_are_none_are_refused_as_a_whole(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=tuple[Order, ...])
