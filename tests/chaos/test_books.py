"""The comparison at the end of a run finds what is wrong, and nothing in a cloud that is as it should be."""

from collections.abc import Callable
from typing import Any

import pytest

from chaos.books import Books, Found, Wanted, differences
from chaos.guests import CARDS, ENDED, FLAT, STARTED, Event, overlaps, running

HOST, OTHER = "host-1", "host-2"
PROVIDERS = {HOST: "provider-1", OTHER: "provider-2"}
HELD = {"VCPU": 2, "MEMORY_MB": 512}
SHAPES = {HOST: FLAT, OTHER: CARDS}


def shown(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "flavor": name,
        "state": "active",
        "cell": "cell1",
        "host": HOST,
        "attempt": 1,
        "reason": None,
        **changes,
    }


def as_it_should_be() -> tuple[Books, dict[str, Any]]:
    """One instance runs, one could not be placed, one is deleted, and one was accepted without an answer."""
    books = Books()
    for name in ("runs", "refused", "gone", "unheard"):
        books.requests[name] = Wanted(name, 2, 512, 1)
        books.accepted[f"i-{name}"] = name
    del books.accepted["i-unheard"]
    books.perhaps.add("unheard")
    books.deleted.add("i-gone")
    found = {
        "shown": {
            "i-runs": shown("runs"),
            "i-refused": shown("refused", state="error", host=None, reason="no host"),
            "i-unheard": shown("unheard", host=OTHER, attempt=2),
        },
        "guests": [
            ("i-runs", Event(1.0, STARTED, HOST, "i-runs", 1)),
            ("i-unheard", Event(2.0, STARTED, OTHER, "i-unheard", 2)),
        ],
        "holdings": {
            "i-runs": {"provider-1": HELD},
            "i-unheard": {"provider-2": HELD},
            "i-refused": {},
            "i-gone": {},
        },
        "used": {"provider-1": HELD, "provider-2": {**HELD, "DISK_GB": 0}},
        "hosts": PROVIDERS,
        "shapes": dict(SHAPES),
    }
    return books, found


def test_nothing_is_wrong_where_all_agree() -> None:
    books, found = as_it_should_be()
    assert differences(books, Found(**found), SHAPES) == []


def lost(books: Books, found: dict[str, Any]) -> None:
    del found["shown"]["i-refused"]


def back(books: Books, found: dict[str, Any]) -> None:
    found["shown"]["i-gone"] = shown("gone", state="error", reason="?")


def unsettled(books: Books, found: dict[str, Any]) -> None:
    found["shown"]["i-refused"]["state"] = "assigned"


def without_reason(books: Books, found: dict[str, Any]) -> None:
    found["shown"]["i-refused"]["reason"] = None


def nobodys(books: Books, found: dict[str, Any]) -> None:
    found["shown"]["i-new"] = shown("refused", state="error", reason="?")


def part_of_a_request(books: Books, found: dict[str, Any]) -> None:
    books.requests["unheard"] = Wanted("unheard", 2, 512, 2)


def no_guest(books: Books, found: dict[str, Any]) -> None:
    del found["guests"][0]


def two_guests(books: Books, found: dict[str, Any]) -> None:
    found["guests"].append(("i-runs", Event(3.0, STARTED, OTHER, "i-runs", 2)))


def guest_elsewhere(books: Books, found: dict[str, Any]) -> None:
    found["guests"][0] = ("i-runs", Event(3.0, STARTED, OTHER, "i-runs", 1))


def guest_of_the_deleted(books: Books, found: dict[str, Any]) -> None:
    found["guests"].append(("i-gone", Event(3.0, STARTED, OTHER, "i-gone", 1)))


def no_claim(books: Books, found: dict[str, Any]) -> None:
    found["holdings"]["i-runs"] = {}
    found["used"]["provider-1"] = {}


def not_reshaped(books: Books, found: dict[str, Any]) -> None:
    found["shapes"][OTHER] = FLAT


def leaked_claim(books: Books, found: dict[str, Any]) -> None:
    found["holdings"]["i-gone"] = {"provider-1": {"VCPU": 1}}
    found["used"]["provider-1"] = {"VCPU": 3, "MEMORY_MB": 512}


def claim_of_nobody(books: Books, found: dict[str, Any]) -> None:
    found["used"]["provider-2"] = {"VCPU": 3, "MEMORY_MB": 512}


def bad_answer(books: Books, found: dict[str, Any]) -> None:
    books.wrong.append("POST /v1/instances: 500")


FAULTS = {
    lost: "instance i-refused is lost",
    back: "instance i-gone was deleted and is",
    unsettled: "instance i-refused is not settled",
    without_reason: "in error without a reason",
    nobodys: "nobody asked for instance i-new",
    part_of_a_request: "request unheard was for 2 instances and has 1",
    no_guest: "instance i-runs is active, but has no guest",
    two_guests: "instance i-runs runs twice",
    guest_elsewhere: "instance i-runs is shown as",
    guest_of_the_deleted: "instance i-gone is gone, but has a guest",
    no_claim: "instance i-runs holds {}",
    leaked_claim: "instance i-gone holds",
    not_reshaped: f"host {OTHER} is flat in placement, and began as cards",
    claim_of_nobody: "provider provider-2 has",
    bad_answer: "500",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found(fault: Callable[[Books, dict[str, Any]], None]) -> None:
    books, found = as_it_should_be()
    fault(books, found)
    wrong = differences(books, Found(**found), SHAPES)
    assert any(FAULTS[fault] in each for each in wrong), wrong


def test_a_deletion_without_an_answer_may_have_been_carried_out_or_not() -> None:
    books, found = as_it_should_be()
    books.perhaps_deleted |= {"i-runs", "i-refused"}
    del found["shown"]["i-refused"]
    assert differences(books, Found(**found), SHAPES) == []


def test_an_instance_that_ran_twice_at_a_time_is_found_though_one_guest_has_ended_since() -> None:
    moved = [
        Event(1.0, STARTED, HOST, "i", 1),
        Event(2.0, ENDED, HOST, "i", 1),
        Event(3.0, STARTED, OTHER, "i", 2),
    ]
    assert overlaps(moved) == []
    assert [each.host for _, each in running(moved)] == [OTHER]
    twice = [moved[0], moved[2], moved[1]._replace(at=4.0)]
    assert len(overlaps(twice)) == 1
    assert [each.host for _, each in running(twice)] == [OTHER]
