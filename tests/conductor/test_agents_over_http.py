"""Agents over HTTP: the same agents and endpoint as in one process, with tokens between them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest
import structlog.testing

from roost.agent.hosted_agents import HostedAgents
from roost.agent.protocol.client import HttpEndpoint
from roost.agent.protocol.connections import Response
from roost.agent.protocol.errors import (
    AccessRefused,
    CellTakenBack,
    EndpointUnavailable,
    LateMessage,
    MessageRefused,
    SessionLost,
    SessionTaken,
)
from roost.agent.protocol.questions import Closing, Confirm, Opening, Poll, ReadTree, RenewToken
from roost.agent.protocol.types import SessionKey
from roost.agent.protocol.wire import CODES
from roost.conductor.agent_endpoint import tokens
from roost.conductor.agent_endpoint.tokens import FRESH_SECONDS, HostTokens
from roost.model.instance import ACTIVE
from roost.model.names import provider_uuid
from roost.model.token import token_digest
from roost.state.cell_database.host_admission import issue_token, read_host_tokens, revoke_tokens, use_token
from roost.web.auth import IdentityUnavailable
from support.agents import FAST, until
from support.cells import NOW, instance
from support.served_agents import served
from support.waiting import patience


class Says:
    """Gives one response to all messages."""

    def __init__(self, response: Response) -> None:
        self._response = response

    async def send(self, *_: object) -> Response:
        return self._response

    async def close(self) -> None:
        """There is nothing to close."""


def opening(host: str = "a", nonce: str = "1") -> Opening:
    return Opening(host=host, nonce=nonce)


def test_agents_build_over_http(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            of = {host: api.client(await api.token(host)) for host in "ab"}

            class Each:
                async def ask(self, question, /):
                    host = question.host if isinstance(question, Opening) else question.session.host
                    return await of[host].ask(question)

            async with api.world.running(Each()):
                await api.world.cell.add([instance("i"), instance("j", "b")])
                await api.world.reaches(ACTIVE, "i")
                await api.world.reaches(ACTIVE, "j")
            assert "VCPU" in await api.world.placement.inventories(provider_uuid("b"))

    asyncio.run(run())


def test_metrics_that_cannot_be_sent_stop_no_polls(tmp_path) -> None:
    strange = {
        "nan": float("nan"),
        "inf": float("inf"),
        "huge": 10**5000,
        "text": "2",
        "caf\udce9": 1.0,
        "": 1.0,
        3: 3.0,
    }

    async def run() -> None:
        async with served(tmp_path) as api:
            client = api.client(await api.token("a"))
            api.world.a.metrics = lambda: {"load": 1.5, "count": 2, **strange}
            agent = HostedAgents([("a", client, api.world.a, None)], times=FAST)
            with structlog.testing.capture_logs() as logs:
                running = asyncio.create_task(agent.run())
                await asyncio.wait_for(agent.started(), patience(20))

                async def told() -> bool:
                    return [each.metrics for each in await api.world.cell.nodes()] == [
                        {"load": 1.5, "count": 2.0}
                    ]

                await until(told)
                running.cancel()
            dropped = [each["error"] for each in logs if each["event"].startswith("metrics of the driver")]
            # Told once, however many polls there are.
            assert dropped == [r"'', 'caf\udce9', 'huge', 'inf', 'nan', 'text', 3"]

    asyncio.run(run())


def test_each_refusal_is_the_same_error_as_in_one_process(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            client = api.client(await api.token("a"))
            opened = await client.ask(opening())
            with pytest.raises(SessionTaken, match="another agent has the session of host a"):
                await client.ask(opening(nonce="2"))
            await client.ask(Poll(session=opened.session, counter=2))
            with pytest.raises(LateMessage):
                await client.ask(Poll(session=opened.session, counter=1, results=(), guests=()))
            with pytest.raises(CellTakenBack, match="knows less of session 1 of host a than its agent"):
                await client.ask(Poll(session=opened.session, counter=4, counted=3, guests=()))
            with pytest.raises(CellTakenBack):
                await client.ask(Confirm(opened.session, "i", 1, counted=3))
            assert not await client.ask(Confirm(opened.session, "i", 1, counted=2))
            gone = SessionKey("a", "other", 7)
            with pytest.raises(SessionLost, match="session 7 of host a"):
                await client.ask(Poll(session=gone, counter=1))
            await api.world.cell.write(issue_token(host="b", digest="x", at=NOW))
            with pytest.raises(AccessRefused, match="the token is that of host a, not of host b"):
                await client.ask(opening("b"))
            assert await client.ask(ReadTree(opened.session, provider_uuid("a"))) == ()
            assert await client.ask(Closing(opened.session)) is None
            await client.ask(opening(nonce="3"))

    asyncio.run(run())


def test_host_without_a_valid_token_is_refused(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            token = await api.token("a")
            with pytest.raises(AccessRefused, match="refuses the token"):
                await api.client("roost-host-wrong").ask(opening())
            with pytest.raises(AccessRefused, match="there is no token"):
                await api.client().ask(opening())
            # A wrong one in front, as after a renewal whose token was replaced by an operator's.
            client = api.client("roost-host-wrong", token)
            await client.ask(opening())
            assert await api.world.cell.write(revoke_tokens("a")) == 1
            api.now += FRESH_SECONDS
            with pytest.raises(AccessRefused):
                await client.ask(opening())

    asyncio.run(run())


def test_old_token_is_valid_until_the_new_one_is_used(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            old = await api.token("a")
            by_old = api.client(old)
            opened = await by_old.ask(opening())
            lost = await by_old.ask(RenewToken(opened.session))
            new = await by_old.ask(RenewToken(opened.session))
            api.now += FRESH_SECONDS
            with pytest.raises(AccessRefused):
                await api.client(lost).ask(Poll(session=opened.session, counter=1))
            await by_old.ask(Poll(session=opened.session, counter=2))
            await api.client(new).ask(Poll(session=opened.session, counter=3))
            api.now += FRESH_SECONDS
            with pytest.raises(AccessRefused):
                await by_old.ask(Poll(session=opened.session, counter=4))
            # Nothing of a token but its digest is kept.
            [kept] = (await api.world.cell.read(read_host_tokens())).values()
            assert (kept.digest, kept.host, kept.is_used) == (token_digest(new), "a", True)

    asyncio.run(run())


def test_token_that_is_known_counts_while_the_database_is_away(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            token = await api.token("a")
            client = api.client(token)
            opened = await client.ask(opening())
            await api.world.cell.database.close()
            api.now += FRESH_SECONDS
            with pytest.raises(EndpointUnavailable):
                await client.ask(Poll(session=opened.session, counter=1, guests=()))
            with pytest.raises(EndpointUnavailable):
                await api.client("roost-host-unknown").ask(opening())

    asyncio.run(run())


def test_cell_that_hangs_holds_all_requests_together_and_not_for_long(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            token, unknown = await api.token("a"), "roost-host-unknown"
            cell, now = Hanging(api.world.cell), [0.0]
            authenticator = HostTokens(cell, lambda: now[0])
            identity = await authenticator.identify({"x-auth-token": token})
            assert identity is not None and identity.user_id == "a"
            cell.hangs, now[0] = True, FRESH_SECONDS
            before = cell.reads
            with monkeypatch.context() as patched:
                # For a cell that answers it would be too short on a busy machine.
                patched.setattr(tokens, "CELL_SECONDS", 0.05)
                found = await asyncio.gather(
                    *(authenticator.identify({"x-auth-token": each}) for each in [token, unknown] * 20),
                    return_exceptions=True,
                )
            # A host that is known learns of the outage from the answer to its question.
            assert found[0::2] == [identity] * 20
            assert {type(each) for each in found[1::2]} == {IdentityUnavailable}
            assert cell.reads == before + 1
            cell.hangs = False
            assert await authenticator.identify({"x-auth-token": unknown}) is None
            # Who goes away leaves the look to those who wait.
            now[0] += FRESH_SECONDS
            first, second = (
                asyncio.create_task(authenticator.identify({"x-auth-token": token})) for _ in range(2)
            )
            await asyncio.sleep(0)
            first.cancel()
            assert await second == identity

    asyncio.run(run())


class Hanging:
    """A cell whose database does not answer while it ``hangs``."""

    def __init__(self, cell) -> None:
        self._cell = cell
        self.hangs = False
        self.reads = 0

    async def read(self, work):
        self.reads += 1
        if self.hangs:
            await asyncio.Event().wait()
        return await self._cell.read(work)

    async def write(self, work):
        return await self._cell.write(work)


def test_token_that_is_in_use_ends_no_newer_one(tmp_path) -> None:
    """As when two processes see its first use."""

    async def run() -> None:
        async with served(tmp_path) as api:
            write = api.world.cell.write
            await write(issue_token(host="a", digest="first", at=NOW))
            assert await write(use_token("first"))
            await write(issue_token(host="a", digest="newer", at=NOW))
            assert await write(use_token("first"))
            assert set(await api.world.cell.read(read_host_tokens())) == {"first", "newer"}
            assert await write(use_token("newer"))
            assert not await write(use_token("first"))
            assert set(await api.world.cell.read(read_host_tokens())) == {"newer"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (502, b"<html>", EndpointUnavailable),
        (503, b"", EndpointUnavailable),
        (429, b"", EndpointUnavailable),
        (404, b"{}", MessageRefused),
        (413, b"", MessageRefused),
        (403, b"[]", AccessRefused),
        (401, b"", AccessRefused),
        (200, b"<html>\xff", MessageRefused),
        (302, b"", MessageRefused),
        *((409, msgspec.json.encode({"errors": [{"code": code}]}), kind) for code, kind in CODES.items()),
    ],
)
def test_whatever_answers_is_an_error_of_the_protocol(status, body, error) -> None:
    async def run() -> None:
        client = HttpEndpoint("http://cell", lambda: ["t"], transport=Says(Response(status, body)))
        with pytest.raises(error):
            await client.ask(opening())
        await client.close()

    asyncio.run(run())


@asynccontextmanager
async def listening(talk) -> AsyncIterator[str]:
    """The URL of a server whose connections are answered by ``talk``."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_broken_connection_is_tried_once_more() -> None:
    async def run() -> None:
        asked = []

        async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.close()

        async with listening(breaks) as url:
            client = HttpEndpoint(url, lambda: ["t"])
            with pytest.raises(EndpointUnavailable, match="the connection broke: ServerDisconnectedError"):
                await client.ask(opening())
        assert len(asked) == 2
        with pytest.raises(EndpointUnavailable, match="cannot be reached: ClientConnectorError"):
            await client.ask(opening())
        assert len(asked) == 2
        await client.close()

    asyncio.run(run())


def test_connection_that_was_kept_open_and_closed_meanwhile_costs_nobody_a_failure() -> None:
    async def run() -> None:
        connections = []

        async def answers_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 409 X\r\ncontent-length: 2\r\n\r\n{}")
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        async with listening(answers_once) as url:
            client = HttpEndpoint(url, lambda: ["t"])
            for _ in range(3):
                with pytest.raises(MessageRefused, match="the endpoint answers 409"):
                    await client.ask(opening())
            assert len(connections) == 3
            await client.close()
            for each in connections:
                each.close()

    asyncio.run(run())


def test_token_that_another_message_has_renewed_meanwhile_is_no_failure() -> None:
    """The use of a new token ends the old one, with which a message may be under way."""

    class Renewing(Says):
        async def send(self, path: str, content: bytes, headers: Mapping[str, str], _: float) -> Response:
            token = headers["x-auth-token"]
            used.append(token)
            tokens[:] = ["new", "given"]
            return Response(204, b"") if token == "new" else Response(401, b"")

    async def run() -> None:
        client = HttpEndpoint("http://cell", lambda: tokens, transport=Renewing(Response(401, b"")))
        await client.ask(Closing(SessionKey("a", "nonce", 1)))

    tokens, used = ["old", "given"], []
    asyncio.run(run())
    assert used == ["old", "new"]


def test_message_that_cannot_be_encoded_is_refused() -> None:
    async def run() -> None:
        client = HttpEndpoint("http://cell", lambda: ["t"])
        with pytest.raises(MessageRefused, match="cannot be encoded"):
            await client.ask(opening(host="\udc80"))
        await client.close()

    asyncio.run(run())


def test_the_first_uses_of_many_tokens_cost_one_look(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            hosts = [f"h{number}" for number in range(20)]
            for host in hosts:
                await api.world.cell.write(issue_token(host=host, digest=token_digest(host), at=NOW))
            cell = Hanging(api.world.cell)
            authenticator = HostTokens(cell, lambda: 0.0)
            for host in hosts:
                identity = await authenticator.identify({"x-auth-token": host})
                assert identity is not None and identity.user_id == host
            assert cell.reads == 1

    asyncio.run(run())
