"""Pages that show events are told when there are new ones, and nobody looks without such a page."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from roost.dashboard.live.log_looks import LogLooks
from roost.storage import DatabaseUnavailable
from support.dashboard_users import dashboard_users


def test_new_events_are_told_to_those_who_view_them(tmp_path: Path) -> None:
    async def check() -> None:
        async with dashboard_users(tmp_path) as users:
            assert users.service.cloud is not None
            hub, looks = users.service.live, LogLooks(users.service.live, users.service.cloud.newest)
            other = await hub.join(["tick"])
            await other.take(0.0)
            await looks.look()
            viewer = await hub.join(["events"])

            async def told() -> bool:
                await looks.look()
                return b"event: events" in await viewer.take(0.0)

            assert not await told() and not await told()
            await users.post("/ui/actions/disable", {"host": "a"})
            assert await told() and not await told()
            # A change in a cell, before it has a position.
            await users.ask_for("mia")
            assert await told() and not await told()
            assert b"event: events" not in await other.take(0.0)

    asyncio.run(check())


def test_a_cell_that_is_away_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(work: object) -> Any:
        raise DatabaseUnavailable("away")

    async def check() -> None:
        async with dashboard_users(tmp_path) as users:
            assert users.service.cloud is not None
            looks = LogLooks(users.service.live, users.service.cloud.newest)
            viewer = await users.service.live.join(["events"])
            await looks.look()
            monkeypatch.setattr(users.now.cells["cell2"], "read", fail)
            await looks.look()
            await viewer.take(0.0)
            await users.post("/ui/actions/disable", {"host": "a"})
            await looks.look()
            assert b"event: events" in await viewer.take(0.0)
            monkeypatch.setattr(users.service.cloud.api, "read", fail)
            await looks.look()

    asyncio.run(check())
