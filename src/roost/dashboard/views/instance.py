"""One instance: its state, where it is and was, its claim and its history."""

from collections.abc import Sequence

import msgspec

from roost.conductor.history.types import InstanceHistory
from roost.conductor.instances.types import ShownInstance
from roost.conductor.moves.types import DescribedMove
from roost.dashboard.actions.instance_act import ActVerb, move_of, offered
from roost.dashboard.past.past_moments import PastMissing
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.dashboard.views.host_stays import HostStay, stay_at, stays_of
from roost.fleet import Fleet
from roost.model.visibility import seen, seen_by_project, visible
from roost.state.api_database.consumers import find_consumers
from roost.web.errors import NotFound
from roost.web.request import Request


class ProviderClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a claim that one provider serves. ``amounts``: by class, in units of the class.

    ``name``: None if the provider is not known here, or any more.
    """

    provider: str
    name: str | None
    amounts: dict[str, int]


class InstanceView(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, with its history. ``now``: seconds since the epoch.

    ``instance``: None if nothing is left of it. ``claim``: what it holds in placement. ``stays``: the hosts
    that it was on. ``asked``: the time that was asked for, and ``then``: the stay at that time. ``claim`` is
    of that time then; ``claim_missing``: why it is not known. ``move``: the one under way, if the viewer may
    see it. ``acts``: those that the viewer may do.
    """

    now: float
    uuid: str
    instance: ShownInstance | None
    history: InstanceHistory
    stays: tuple[HostStay, ...]
    claim: tuple[ProviderClaim, ...] = ()
    claim_missing: str | None = None
    asked: float | None = None
    then: HostStay | None = None
    move: DescribedMove | None = None
    acts: tuple[ActVerb, ...] = ()

    @property
    def name(self) -> str | None:
        """The name that people call it, None without one."""
        return None if self.instance is None else self.instance.name

    @property
    def state(self) -> str:
        """The state of the instance, or of its history."""
        return self.history.state if self.instance is None else self.instance.state

    @property
    def ended(self) -> float | None:
        """The time at which nothing of it was left, None if it is there."""
        if self.instance is not None or not self.history.actions:
            return None
        return self.history.actions[-1].finished_at


@of_cloud
async def instance_view(
    service: DashboardService, cloud: CloudReads, req: Request, uuid: str
) -> InstanceView:
    """Return an instance that the viewer may see. Raises `NotFound` for all others.

    ``uuid``: of the instance, or of a consumer that was drawn to unshelve it.
    """
    drawn = await cloud.api.read(find_consumers((uuid,)))
    uuid = drawn.get(uuid, uuid)
    known = await cloud.histories.find(uuid)
    if known is None or not req.projects.include(known.project_id):
        raise NotFound(
            f"There is no instance {uuid}, and no history of one: histories are kept for some days."
        )
    history = known.told([visible(each, req.viewer) for each in known.runs])
    instance = await cloud.instances.find(uuid)
    stays = stays_of(history)
    asked = None if req.query.at is None else await service.past.time_of(req.query.at)
    claim: tuple[ProviderClaim, ...] = ()
    if instance is not None and instance.claim is not None:
        fleet = None if service.ledger is None else await service.ledger.current()
        claim = _claim(instance.claim, fleet)
    missing = None
    if req.query.at is not None and service.is_operator(req.identity):
        claim, missing = await _claim_at(service, (uuid, *drawn), req.query.at)
    move = await move_of(service, cloud, req, instance)
    return InstanceView(
        now=service.clock(),
        uuid=uuid,
        instance=instance,
        history=history,
        stays=stays,
        claim=claim,
        claim_missing=missing,
        asked=asked,
        then=None if asked is None else stay_at(stays, asked),
        move=move,
        acts=offered(service, req, instance, move),
    )


async def _claim_at(
    service: DashboardService, consumers: Sequence[str], at: str
) -> tuple[tuple[ProviderClaim, ...], str | None]:
    """Return what an instance held as of a moment; or why that is not known.

    ``consumers``: its own uuid, and those that were drawn for it: one of them holds something at a time.
    """
    try:
        moment = await service.past.moment(at)
        all_found = [await service.past.consumer(each, moment.version) for each in consumers]
    except PastMissing as error:
        return (), str(error)
    found = next((each for each in all_found if each.holder is not None), None)
    if found is None or found.holder is None:
        return (), None
    parts = (
        ProviderClaim(
            provider=provider,
            name=found.places[provider].name if provider in found.places else None,
            amounts=dict(sorted(amounts.items())),
        )
        for provider, amounts in found.holder.allocations.items()
    )
    return tuple(sorted(parts, key=lambda each: (each.name or "", each.provider))), None


def _claim(claim: dict[str, dict[str, int]], fleet: Fleet | None) -> tuple[ProviderClaim, ...]:
    parts = []
    for provider, amounts in claim.items():
        known = fleet is not None and provider in fleet
        name = fleet.name(fleet.row(provider)) if fleet is not None and known else None
        parts.append(ProviderClaim(provider=provider, name=name, amounts=dict(sorted(amounts.items()))))
    return tuple(sorted(parts, key=lambda each: (each.name or "", each.provider)))


@seen_by_project(InstanceView)
def _instance(view: InstanceView) -> InstanceView:
    """Return the instance as its project sees it: the times of its stays, and no hosts."""
    history = seen(view.history)
    stays = stays_of(history)
    return msgspec.structs.replace(
        view,
        instance=None if view.instance is None else seen(view.instance),
        history=history,
        stays=stays,
        claim=(),
        move=None,
        then=None if view.asked is None else stay_at(stays, view.asked),
    )
