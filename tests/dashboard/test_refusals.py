"""Refusals of all causes: without what its page names, each request is placed when it is decided again."""

from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

from roost.dashboard.form import FormQuery
from roost.dashboard.views.decision import decision_of
from roost.dashboard.views.request_form import RequestForm, scenario_of_form, spec_of_form
from roost.scheduler.request.changed import Changes
from support.refused_requests import CAUSES, RefusedRequest, refused_request


def agrees(refused: RefusedRequest) -> bool:
    """Return whether the oracle agrees with the page of a refusal."""
    world, wanted = refused.world, refused.spec
    view = decision_of(world.record(wanted), world.table, of_project=False)
    assert view.refusal is not None
    causes = [each.cause for each in view.refusal.causes]
    if not causes:
        return False
    whole = Changes(tuple(name for each in causes for name in each.without))
    alone = [Changes(each.without) for each in causes] if len(causes) > 1 else []
    return world.fits(wanted, whole) and not any(world.fits(wanted, each) for each in alone)


def ways_work(refused: RefusedRequest) -> bool:
    """Check that each way out works that is offered, as the page of what-ifs would read its address.

    Returns whether there is one.
    """
    world, wanted = refused.world, refused.spec
    view = decision_of(world.record(wanted), world.table, of_project=False)
    assert view.refusal is not None
    offered = [each.address for each in view.refusal.ways if each.address]
    for address in offered:
        form = FormQuery(RequestForm).convert(parse_qs(urlsplit(address).query))
        changes = Changes(scenario_of_form(form).without)
        assert world.fits(spec_of_form(form, wanted), changes), (wanted, address)
    return bool(offered)


def agreement(number: int) -> tuple[Counter[str], Counter[str]]:
    """Return how many refusals of each cause were drawn, and for how many the oracle agrees."""
    drawn, agreed = Counter[str](), Counter[str]()
    for seed in range(number):
        for cause in CAUSES:
            refused = refused_request(seed, cause)
            drawn[cause] += 1
            agreed[cause] += agrees(refused)
    return drawn, agreed


def test_asking_again_with_a_change_that_is_offered_works() -> None:
    offered = [ways_work(refused_request(seed, cause)) for seed in (100, 101) for cause in CAUSES]
    assert sum(offered) > 0.7 * len(offered)


def test_the_page_of_a_refusal_names_its_cause() -> None:
    drawn, agreed = agreement(4)
    assert agreed.total() >= 0.95 * drawn.total(), (drawn, agreed)


@pytest.mark.nightly
def test_the_pages_of_hundreds_of_refusals_name_their_causes() -> None:
    drawn, agreed = agreement(40)
    print(f"the oracle agrees with {agreed.total()} of {drawn.total()}: {dict(agreed)}")
    assert agreed.total() >= 0.95 * drawn.total(), (drawn, agreed)
