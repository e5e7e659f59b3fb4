"""Changes of hosts that are interrupted, at each of their writes, are repeated until they are done."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager

import httpx

from roost.conductor.agent_endpoint.sessions import free_all_sessions
from roost.model.token import token_digest
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.host_mappings import cells_of_hosts
from roost.state.cell_database.host_admission import read_host_tokens
from roost.state.cell_database.hosts import describe_hosts
from roost.storage import DatabaseUnavailable
from support.conductor_api import ADMIN, api, detail
from support.works import is_of

WRITES = 12
"""More than any of the changes has."""


@contextmanager
def interrupted(now, after: int):
    """The writes to all databases but the first ones fail."""
    databases = [now.requests.database, *(cell.database for cell in now.cells.values())]
    done = 0

    def cut(write):
        async def wrapped(work):
            nonlocal done
            done += 1
            if done > after:
                raise DatabaseUnavailable("cut off")
            return await write(work)

        return wrapped

    for database in databases:
        database.write = cut(database.write)
    try:
        yield
    finally:
        for database in databases:
            del database.write


async def until_done(
    now, after: int, change: Callable[[], Awaitable[httpx.Response]], status: int
) -> tuple[httpx.Response, bool]:
    """The answer in the end, and whether the first try was interrupted."""
    with interrupted(now, after):
        first = await change()
    if first.status_code == status:
        return first, False
    assert first.status_code == 503, first.text
    again = await change()
    assert again.status_code == status, again.text
    return again, True


def each_write(change: Callable) -> Callable:
    """Interrupt a change before each of its writes; ``change`` tells whether it was."""

    async def run(directory) -> None:
        async with api(directory) as (now, client):
            cut = [await change(now, client, after) for after in range(WRITES)]
            assert cut[0] and not cut[-1]
            assert cut == sorted(cut, reverse=True)

    return run


async def in_cell(now, cell: str, host: str) -> bool:
    return host in await now.cells[cell].read(describe_hosts((host,)))


async def mapped(now, host: str) -> str | None:
    return (await now.requests.database.read(cells_of_hosts((host,)))).get(host)


async def has_token(now, cell: str, host: str, token: str) -> bool:
    tokens = await now.cells[cell].read(read_host_tokens())
    found = tokens.get(token_digest(token))
    return found is not None and found.host == host


def test_hosts_are_added_all_or_none(tmp_path) -> None:
    async def change(now, client, after: int) -> bool:
        hosts = [f"{after}-1", f"{after}-2"]
        body = {"cell": "cell1", "hosts": hosts}
        answer, cut = await until_done(
            now, after, lambda: client.post("/v1/hosts", json=body, headers=ADMIN), 201
        )
        for each in answer.json()["hosts"]:
            assert await has_token(now, "cell1", each["host"], each["token"])
            assert await mapped(now, each["host"]) == "cell1"
        return cut

    asyncio.run(each_write(change)(tmp_path))


def test_removal_goes_on_where_it_stopped(tmp_path) -> None:
    async def change(now, client, after: int) -> bool:
        host = f"h{after}"
        await client.post("/v1/hosts", json={"cell": "cell1", "hosts": [host]}, headers=ADMIN)
        await now.super.watch.look()
        _, cut = await until_done(now, after, lambda: client.delete(f"/v1/hosts/{host}", headers=ADMIN), 200)
        assert not await in_cell(now, "cell1", host) and await mapped(now, host) is None
        said = await now.words.store.of_hosts((host,))
        assert all(word.enabled for word in said.values()), "a later host of the name begins anew"
        assert (await client.delete(f"/v1/hosts/{host}", headers=ADMIN)).status_code == 404
        return cut

    asyncio.run(each_write(change)(tmp_path))


def test_move_goes_on_where_it_stopped(tmp_path) -> None:
    async def change(now, client, after: int) -> bool:
        host = f"h{after}"
        await client.post("/v1/hosts", json={"cell": "cell1", "hosts": [host]}, headers=ADMIN)
        await now.super.watch.look()
        body = {"cell": "cell2"}
        answer, cut = await until_done(
            now, after, lambda: client.post(f"/v1/hosts/{host}/move", json=body, headers=ADMIN), 200
        )
        assert not await in_cell(now, "cell1", host) and await in_cell(now, "cell2", host)
        assert await mapped(now, host) == "cell2"
        assert await has_token(now, "cell2", host, answer.json()["token"])
        return cut

    asyncio.run(each_write(change)(tmp_path))


def test_host_whose_removal_is_refused_keeps_its_token(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            token = (await client.post("/v1/hosts/d/token", headers=ADMIN)).json()["token"]
            write = ConsumerWrite(
                consumer="foreign", allocations={"node-d": {"VCPU": 1}}, project_id="p", user_id="u"
            )
            await now.placement.write_allocations([write])
            await now.cells["cell2"].write(free_all_sessions())
            await now.super.watch.look()
            refused = await client.delete("/v1/hosts/d", headers=ADMIN)
            assert (refused.status_code, "node-d" in detail(refused)) == (409, True)
            assert await has_token(now, "cell2", "d", token)

    asyncio.run(run())


def test_host_is_added_while_a_cell_goes(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            read = now.cells["cell2"].database.read

            async def reading(work, **how):
                if is_of(work, describe_hosts):
                    now.cells.pop("cell2", None)
                return await read(work, **how)

            now.cells["cell2"].database.read = reading
            added = await client.post("/v1/hosts", json={"cell": "cell1", "hosts": ["x"]}, headers=ADMIN)
            assert added.status_code == 201, added.text

    asyncio.run(run())
