"""The digest of guests follows guests that come and go, in any order."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from roost.agent.protocol.types import EMPTY, SIZE, Build, Destroy, Order, digest_of, part_of
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
    orders: tuple[Order, ...] = (Build(wanted, 60.0), Destroy("j", 1))
    assert [order.key for order in orders] == [("i", 2), ("j", 1)]
    assert msgspec.json.decode(msgspec.json.encode(orders), type=tuple[Order, ...]) == orders
