"""The view of the page that asks before an operator's word: what is there now, and what will happen."""

import msgspec

from roost.dashboard.actions.place import PlaceNow, place_now
from roost.dashboard.actions.word import WordSubject, WordVerb
from roost.dashboard.html.values import amount, counted, number
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.web.request import Request

NOTHING_DOES = (
    "This dashboard only shows. conductor_endpoint in [dashboard] of its configuration would name the "
    "conductor that carries this out."
)


class WordConfirmation(msgspec.Struct, frozen=True, kw_only=True):
    """The question before a word on a place. ``will``: what happens, a sentence each.

    ``user``: the one who says it. ``hindered``: why it cannot be said here, None if it can.
    """

    verb: WordVerb
    place: PlaceNow
    user: str
    will: tuple[str, ...]
    hindered: str | None = None


@of_cloud
async def word_confirmation(
    service: DashboardService, cloud: CloudReads, req: Request, verb: WordVerb
) -> WordConfirmation:
    """Return the question before a word on a place."""
    place = await place_now(service, cloud, WordSubject.of(req.query))
    return WordConfirmation(
        verb=verb,
        place=place,
        user=req.identity.user_id,
        will=_will_of_word(verb, place),
        hindered=hindered(service),
    )


def hindered(service: DashboardService) -> str | None:
    """Return why nothing can be done here, None if it can."""
    return None if service.actions is not None else NOTHING_DOES


def _will_of_word(verb: WordVerb, place: PlaceNow) -> tuple[str, ...]:
    there = _instances(place.instances)
    one = place.instances == 1
    if verb == "enable":
        will = [f"{_hosts(place)} may get new instances again, from the answer on."]
        if place.enabled:
            will.append("It is enabled already: nothing changes.")
        if place.within is not None:
            will.append(f"No instance comes until the {place.within} around it is enabled too.")
        return tuple(will)
    will = [f"{_hosts(place)} will get no new instances, from the answer on."]
    if place.free:
        amounts = ", ".join(
            f"{amount(each.resource_class, each.free)} of {amount(each.resource_class, each.capacity)} "
            f"{each.resource_class}"
            for each in place.free
        )
        will.append(f"What is free there is offered to no request: {amounts}.")
    if place.instances == 0:
        will.append("No instance is there.")
    else:
        will.append(f"{there} there {'stays and runs' if one else 'stay and run'} on.")
    if verb == "drain" and place.instances == 0:
        will.append("The drain ends at once.")
    elif verb == "drain":
        will.append("The drain ends when the last one is gone. Events tell its beginning and its end.")
        others = "hosts of other cells" if place.host is None else "other hosts of the cell"
        will.append(
            f"If they are to move, {others} take them, a few at once. What cannot move now is tried again."
        )
    if place.enabled is False:
        will.append("It is disabled already: this changes the reason.")
    return tuple(will)


def _hosts(place: PlaceNow) -> str:
    if place.kind == "node":
        return "This node"
    if place.kind == "host":
        nodes = "" if place.nodes in (None, 1) else f", with its {number(place.nodes or 0)} nodes,"
        return f"This host{nodes}"
    if place.hosts is None:
        return "All hosts of this cell"
    return f"{counted(place.hosts, 'host')} of this cell, of which {number(place.hosts_up or 0)} are up,"


def _instances(count: int | None) -> str:
    if count is None:
        return "The instances, whose number the cell does not tell now,"
    return counted(count, "instance")
