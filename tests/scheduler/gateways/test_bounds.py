"""A run that meets a bound over HTTP is refused, and nothing stays claimed."""

import httpx
import pytest

from roost.scheduler import NoValidHost
from support.clouds import flat
from support.wire import Answer, Room, Within, at_claims, refused

FULL = refused(409, "placement.undefined_code", "no room")


def test_claims_of_an_instance(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match="only 2 of 3 instances fit: max_claims_per_instance=2 is met"):
            await room.place(3)
        assert [result for _, result, _ in room.tries()] == ["abandoned", "abandoned", "refused", "refused"]
        assert room.held() == {}
        assert str(room.kept.runs[-1].refusal).endswith(
            "2 claims on 2 hosts were refused, the last one on host3: There was a conflict. no room"
        )

    within(flat(5), work, at_claims(lambda number: None if number < 2 else FULL), max_claims_per_instance=2)


def test_claims_of_an_instance_with_min_count_met(within: Within) -> None:
    async def work(room: Room) -> None:
        placed = await room.place(3, min_count=2)
        assert [each.selected.host for each in placed] == ["host0", "host1"]
        assert len(room.held()) == 2
        assert "max_claims_per_instance=2" in str(room.kept.runs[-1].refusal)

    within(flat(5), work, at_claims(lambda number: None if number < 2 else FULL), max_claims_per_instance=2)


@pytest.mark.parametrize("slow", ["/allocation_candidates", "/allocations"])
def test_time_of_the_run(within: Within, slow: str) -> None:
    rooms: list[Room] = []

    async def take_time(request: httpx.Request) -> Answer:
        if request.url.path == slow:
            rooms[0].passed += 5.0
            return FULL if slow == "/allocations" else None
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        with pytest.raises(NoValidHost, match="max_run_seconds=5 is met"):
            await room.place(3)
        assert room.tries() == []
        assert room.held() == {}

    within(flat(5), work, take_time, max_run_seconds=5.0)
