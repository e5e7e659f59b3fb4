"""Refusals of all causes: without what its page names, each request is placed when it is decided again."""

from collections import Counter

import pytest

from roost.dashboard.views.decision import decision_of
from roost.scheduler.request.changed import Changes
from support.refused_requests import CAUSES, RefusedRequest, refused_request


def agrees(refused: RefusedRequest) -> bool:
    """Return whether the oracle agrees with the page of a refusal."""
    world, wanted = refused.world, refused.spec
    view = decision_of(world.record(wanted), world.table, of_project=False)
    assert view.refusal is not None
    causes = view.refusal.causes
    if not causes:
        return False
    whole = Changes(tuple(name for each in causes for name in each.without))
    alone = [Changes(each.without) for each in causes] if len(causes) > 1 else []
    return world.fits(wanted, whole) and not any(world.fits(wanted, each) for each in alone)


def agreement(number: int) -> tuple[Counter[str], Counter[str]]:
    """Return how many refusals of each cause were drawn, and for how many the oracle agrees."""
    drawn, agreed = Counter[str](), Counter[str]()
    for seed in range(number):
        for cause in CAUSES:
            refused = refused_request(seed, cause)
            drawn[cause] += 1
            agreed[cause] += agrees(refused)
    return drawn, agreed


def test_the_page_of_a_refusal_names_its_cause() -> None:
    drawn, agreed = agreement(4)
    assert agreed.total() >= 0.95 * drawn.total(), (drawn, agreed)


@pytest.mark.nightly
def test_the_pages_of_hundreds_of_refusals_name_their_causes() -> None:
    drawn, agreed = agreement(40)
    print(f"the oracle agrees with {agreed.total()} of {drawn.total()}: {dict(agreed)}")
    assert agreed.total() >= 0.95 * drawn.total(), (drawn, agreed)
