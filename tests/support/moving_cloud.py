"""A cloud over HTTP whose hosts a test plays, for moves of one instance."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx

from roost.model.instance import AttemptKey, BuildResult, DestroyOrder, PowerResult
from roost.model.move_states import PREPARING
from roost.state.cell_database import move_reports, power
from support.conducting import NOW, Conductors
from support.conductor_api import ADMIN, api, asked_for


class Cloud:
    """A cloud whose hosts a test plays, with one instance that is active."""

    def __init__(
        self,
        now: Conductors,
        client: httpx.AsyncClient,
        instance: str,
        headers: Mapping[str, str] = MappingProxyType(ADMIN),
    ) -> None:
        self.now, self.client, self.instance, self.headers = now, client, instance, headers

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.client.request(method, path, json=body, headers=headers or self.headers)

    async def migrate(self, body: Any = None, **headers: str) -> httpx.Response:
        headers = {**self.headers, **headers}
        path = f"/v1/instances/{self.instance}/migrate"
        return await self.client.post(path, json=body or {}, headers=headers)

    async def word(self, verb: str, move: str) -> httpx.Response:
        return await self.ask("POST", f"/v1/moves/{move}/{verb}")

    async def move(self, uuid: str) -> dict[str, Any]:
        answer = await self.ask("GET", f"/v1/moves/{uuid}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.ask("GET", f"/v1/instances/{self.instance}")).json()
        return found

    async def tell(self, work: Any) -> Any:
        """Tell the cell of the instance what a host reports."""
        return await (await self.now.cell_of(self.instance)).write(work)

    async def run_on_target(self, uuid: str, attempt: int = 1) -> None:
        """Play the hosts from the claim of the target until the instance runs there. ``attempt``: its guest
        on the source."""
        await self.now.step()
        move = await self.move(uuid)
        assert move["state"] == PREPARING, move
        key, target = AttemptKey(self.instance, move["attempt"]), move["target_host"]
        stopped = [PowerResult(self.instance, attempt, runs=False)]
        built = BuildResult(self.instance, target, move["attempt"])
        for work in (
            lambda connection: move_reports.confirm_target(connection, key, target, NOW),
            lambda connection: power.report_power(connection, move["source_host"], stopped, NOW),
            lambda connection: move_reports.confirm_target(connection, key, target, NOW),
            lambda connection: move_reports.report_target(connection, built, NOW),
        ):
            await self.tell(work)

    async def destroy(self, attempt: int, host: str) -> None:
        done = [DestroyOrder(self.instance, attempt, host)]
        await self.tell(lambda connection: move_reports.note_moves_destroyed(connection, done, NOW))
        await self.now.step()


def playing(directory: Any, play: Any) -> None:
    """Play a cloud in a folder, and check it at the end."""

    async def run() -> None:
        async with api(directory) as (now, client):
            [instance] = await asked_for(client, 1)
            await now.settle()
            await play(Cloud(now, client, instance))
            await now.check()

    asyncio.run(run())
