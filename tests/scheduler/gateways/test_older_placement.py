"""A placement service that does not know the newest microversions: it is asked at those that it knows."""

import httpx
import pytest

from roost.model.request import CandidateQuery, RequestGroup
from roost.placement.client.transport import OlderService
from roost.scheduler.errors import PlacementRefused
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import flat, spec
from support.wire import INSTANCES, Answer, Room, Within

VERSION = "openstack-api-version"


class Older:
    """Refuses what is newer, as OpenStack's Placement does. ``versions``: those of the requests it took."""

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self.refused = 0
        self.versions = set[str]()

    async def __call__(self, request: httpx.Request) -> Answer:
        if request.url.path.startswith("/v1/"):
            return httpx.Response(404, text="not found")
        version = request.headers[VERSION]
        if int(version.rpartition(".")[2]) > self._newest:
            self.refused += 1
            error = {"status": 406, "detail": "Unacceptable version header", "min_version": "1.0"}
            error["max_version"] = f"1.{self._newest}"
            return httpx.Response(406, json={"errors": [error]})
        self.versions.add(version)
        return None


@pytest.mark.parametrize("newest", [36, 37, 38])
def test_it_is_used_as_far_as_it_goes(within: Within, newest: int) -> None:
    older = Older(newest)

    async def work(room: Room) -> None:
        await room.place(2, 1)
        held = await room.placement.allocations_of(INSTANCES[0])
        assert held is not None
        assert held.consumer.consumer_type == ("INSTANCE" if newest >= 38 else None)
        [larger] = await room.scheduler.select_destinations(
            HostRequest(spec(2), tuple(INSTANCES[:1]), generations={INSTANCES[0]: 1})
        )
        assert room.held()[INSTANCES[0]] == larger.selected.allocations
        assert older.refused == 1
        assert older.versions == {f"placement 1.{newest}"}
        either = frozenset({"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"})
        with pytest.raises(OlderService, match=f"up to 1.{newest}, and this request needs 1.39"):
            await room.placement.candidates(CandidateQuery((RequestGroup({"VCPU": 1}, required=(either,)),)))

    within(flat(2), work, older)


def test_one_that_is_too_old_is_refused_with_both_versions(within: Within) -> None:
    async def work(room: Room) -> None:
        for _ in range(2):
            with pytest.raises(PlacementRefused, match=r"microversions up to 1\.35, and Roost needs 1.36"):
                await room.place()

    within(flat(2), work, Older(35))
