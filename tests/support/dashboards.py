"""A dashboard on a whole system in this process, and a browser's part of it: cookies and the header token."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from roost.server.all_in_one.layout import SystemLayout
from roost.server.all_in_one.system import System
from roost.server.programs import open_parts
from support.systems import SMALL, opened_system

ORIGIN = "http://127.0.0.1:8778"


class DashboardClient:
    """A browser, as far as HTTP goes: it keeps cookies and sends the header token of its session."""

    def __init__(self, system: System, origin: str = ORIGIN) -> None:
        self.system = system
        self.origin = origin
        transport = httpx.ASGITransport(system.application())
        self.http = httpx.AsyncClient(transport=transport, base_url=origin)
        self.guard = ""

    async def log_in(self) -> None:
        """Begin a session by the address that the service would print."""
        address = (self.system.directory / "dashboard" / "address").read_text().strip()
        answer = await self.http.get(address)
        assert answer.status_code == 303, answer.text
        page = await self.http.get("/ui/login")
        found = re.search(r'name="roost-session" content="([^"]+)"', (await self.get("/ui")).text)
        assert found is not None, page.text
        self.guard = found[1]

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers=headers)

    async def view(self, path: str) -> Any:
        """Return the JSON twin of a page."""
        answer = await self.http.get(path, params={"format": "json"} if "?" not in path else None)
        if "?" in path:
            answer = await self.http.get(f"{path}&format=json")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> httpx.Response:
        """Send a form as a page of the dashboard does."""
        sent = {"x-roost-session": self.guard, "origin": self.origin, "sec-fetch-site": "same-origin"}
        return await self.http.post(path, data=fields or {}, headers={**sent, **headers})


@asynccontextmanager
async def opened_dashboard(
    directory: Path, layout: SystemLayout = SMALL, **options: Any
) -> AsyncIterator[DashboardClient]:
    """Open a system with its APIs and a dashboard, and log in."""
    async with opened_system(directory, layout, **options) as system:
        system.address = ORIGIN
        await open_parts(system, {"conductor_api", "scheduler_api", "dashboard", "placement_api"})
        client = DashboardClient(system)
        try:
            await client.log_in()
            yield client
        finally:
            await client.http.aclose()
