"""With a limit on candidates, more are read while too few hosts among them pass the filters."""

import httpx
import pytest

from roost.scheduler import NoValidHost
from support.clouds import flat
from support.wire import Answer, Room, Within

PAGED = "GET /v1/allocation_candidates"


class Foreign:
    """Stands for a service without pages. ``limits``: of each question for candidates."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def __call__(self, request: httpx.Request) -> Answer:
        if request.url.path.startswith("/v1/"):
            return httpx.Response(404, text="not found")
        if request.url.path == "/allocation_candidates":
            self.limits.append(int(request.url.params["limit"]))
        return None


def last_host(hosts: int) -> frozenset[str]:
    """All hosts but the last, which a request does not want."""
    return frozenset(f"host{number}" for number in range(hosts - 1))


@pytest.mark.parametrize("foreign", [False, True])
def test_all_candidates_are_gone_through(within: Within, foreign: bool) -> None:
    service = Foreign()

    async def work(room: Room) -> None:
        [one] = await room.place(ignore_hosts=last_host(9))
        assert one.selected.host == "host8"
        pages = room.wire.asked.count(PAGED)
        if foreign:
            assert service.limits == [2, 4, 8, 16]
        else:
            # The first 2 by the Placement API, then by pages 4, 4 more, and 8 more of which 1 is there.
            assert (room.wire.asked.count("GET /allocation_candidates"), pages) == (1, 3)

    if foreign:
        within(flat(9), work, service, limit=2)
    else:
        within(flat(9), work, limit=2, v1=True)


def test_no_more_are_read_than_are_needed(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place()
        assert room.wire.asked == ["GET /allocation_candidates", "POST /allocations"]

    within(flat(9), work, limit=2)


@pytest.mark.parametrize("foreign", [False, True])
def test_bound_ends_the_reading_and_the_refusal_says_so(within: Within, foreign: bool) -> None:
    service = Foreign()

    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match="more candidates are not read: max_paged_placement_results=5"):
            await room.place(ignore_hosts=last_host(9))
        assert not foreign or service.limits[:3] == [2, 4, 5]

    if foreign:
        within(flat(9), work, service, limit=2, most=5)
    else:
        within(flat(9), work, limit=2, most=5, v1=True)


def test_refusal_of_all_candidates_speaks_of_no_bound(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost) as refused:
            await room.place(ignore_hosts=last_host(9) | {"host8"})
        assert "not read" not in str(refused.value)

    within(flat(9), work, limit=2, most=100, v1=True)


def test_several_instances_are_claimed_once_enough_hosts_were_read(within: Within) -> None:
    async def work(room: Room) -> None:
        placed = await room.place(4, vcpus=8)
        assert len({one.selected.host for one in placed}) == 4
        assert room.wire.asked.count("POST /allocations") == 1

    within(flat(9), work, limit=1)


def test_hosts_that_refuse_their_claims_are_not_the_end(within: Within) -> None:
    async def refuse_first(request: httpx.Request) -> Answer:
        if request.method == "POST" and any(
            f"0000000000{number:02x}" in text for number in (0, 1) for text in [request.content.decode()]
        ):
            error = {"status": 409, "code": "placement.undefined_code", "detail": "no room"}
            return httpx.Response(409, json={"errors": [error]})
        return None

    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host2"
        assert [host for host, _, _ in room.tries()] == ["host0", "host1", "host0", "host1", "host2"]

    within(flat(4), work, refuse_first, limit=2)
