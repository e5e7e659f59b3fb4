"""Refusals of all causes: without what its page names, each request is placed when it is decided again."""

from collections import Counter
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from roost.dashboard.form import FormQuery
from roost.dashboard.html.causes import moves_to_make
from roost.dashboard.views.decision import decision_of
from roost.dashboard.views.request_form import RequestForm, scenario_of_form, spec_of_form
from roost.model.reasons import MoveSearch, ProposedMove, Reasons
from roost.model.visibility import Viewer, visible
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


def test_moves_that_make_room_are_listed_for_operators_alone() -> None:
    refused = refused_request(100, CAUSES[0])
    record = refused.world.record(refused.spec)
    moves = (
        ProposedMove(
            instance="<i1>", source="host0", target="gone", cell="cell1", project_id="p", flavor="<small>"
        ),
    )
    reasons = record.run.reasons or Reasons(sentence="", public="")
    reasons = msgspec.structs.replace(reasons, move_search=MoveSearch(most=1, moves=moves, host="host0"))
    record = msgspec.structs.replace(record, run=msgspec.structs.replace(record.run, reasons=reasons))
    view = decision_of(record, refused.world.table, of_project=False)
    assert view.refusal is not None
    [moved] = view.refusal.moves
    assert moved.source == refused.world.table.nodes[0] and moved.target is None
    page = str(moves_to_make(view.refusal.moves))
    assert "It would fit after moving one instance" in page
    assert "<i1>" not in page and "&lt;i1&gt;" in page and "&lt;small&gt;" in page
    assert "2 instances, one after the other" in str(moves_to_make((moved, moved)))
    assert str(moves_to_make(())) == "None"
    own = decision_of(visible(record, Viewer.PROJECT), refused.world.table, of_project=True)
    assert own.refusal is not None and own.refusal.moves == ()
