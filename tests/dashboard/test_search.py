"""The search of the navigation leads each viewer to a page that answers, whatever is searched for."""

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from support.dashboard_users import dashboard_users


@pytest.mark.parametrize("user", ["olga", "mia"])
@pytest.mark.parametrize(
    "text",
    ["", "web-1", "req-1c3d0de0-5d2c-4d1c-8d7e-0d3f6f5f3b11", "no such thing", "<b>\u202e", "%", "n" * 200],
)
def test_a_search_leads_to_a_page(tmp_path: Path, user: str, text: str) -> None:
    async def run() -> None:
        async with dashboard_users(tmp_path) as users:
            answer = await users.get(f"/ui/search?search={quote(text)}", user)
            assert answer.status_code == 303
            there = answer.headers["location"]
            assert (await users.get(there, user)).status_code == 200

    asyncio.run(run())


@pytest.mark.parametrize("user", ["olga", "mia"])
def test_the_uuid_of_an_instance_leads_to_it(tmp_path: Path, user: str) -> None:
    async def run() -> None:
        async with dashboard_users(tmp_path) as users:
            [uuid] = await users.ask_for("mia")
            answer = await users.get(f"/ui/search?search={uuid.upper()}", user)
            assert answer.headers["location"] == f"/ui/instances/{uuid}"

    asyncio.run(run())
