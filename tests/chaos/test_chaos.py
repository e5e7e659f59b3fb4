"""Everything is killed, stopped, cut off and restarted at random; nothing is lost, and nothing runs twice."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.books import Books, differences
from chaos.cloud import Cloud, cloud
from chaos.finding import audited, disabled_hosts, ended_moves, found, settled, states
from chaos.guests import all_events, overlaps
from chaos.load import Load, User
from chaos.operators import Operator
from chaos.weather import Weather
from roost.bench.server_process import ServerProcess
from roost.cli.verification import verify_database
from roost.process.option_source import Source
from roost.state.api_database.consumers import find_consumers
from roost.storage import Database
from support.databases import Servers
from support.seeds import nightly_seed
from support.servers import Galera
from support.waiting import Deadline, patience

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.36"}
SETTLE_SECONDS = 300.0
"""On a quiet machine it takes some seconds; what is on its way may wait for a lease and for pauses."""

LEAST = 10
"""More lifetimes and more faults than these are a test."""

LATE_SECONDS = 90.0
"""An instance that is shown no more may hold its claim for a while: until the lease of the conductor that
carried its deletion has ended, or, if the claim came after its end, until a look for late claims
(`roost.conductor.claim_release`)."""


def run(
    folder: Path,
    server: ServerProcess,
    seed: str,
    *,
    hosts: int,
    agents: int,
    users: int,
    lifetimes: int,
    seconds: float,
    rest: float = 0.0,
    maintains: bool = False,
) -> None:
    """Let users loose on a cloud in bad weather until so many instances have lived, or for some seconds.

    It lasts longer where hardly anything has happened by then: on a busy machine, or while the database was
    away. Then everybody is well again, and what is left is checked. ``maintains``: hosts are maintained too.
    """
    books = Books()
    with cloud(folder, server, hosts=hosts, agents=agents, seed=seed) as made:
        operator = Operator(
            books, seed, made.conductors, made.hosts, made.guests, HEADERS, maintains=maintains
        )
        weather = Weather(seed, made.programs, made.network, server, dead=operator.hear_of_dead)
        load = Load(
            [
                User(books, f"{seed}.{number}", made.conductors, power=True, rest=rest)
                for number in range(users)
            ],
            HEADERS,
        )

        def is_enough() -> bool:
            return books.lifetimes > LEAST and sum(weather.done.values()) > LEAST

        def is_over(now: float) -> bool:
            is_late = now > seconds and is_enough()
            return books.lifetimes >= lifetimes or is_late or now > seconds + SETTLE_SECONDS

        weather.run(is_over)
        made.heal()
        # On a busy machine hardly a move ends in bad weather.
        moves = wait_for_moves(made, operator)
        load.end()
        operator.end(SETTLE_SECONDS)
        wrong = [*check(made, books), *audit(made)]
        operated = (
            f"{operator.drains} drains; {operator.maintenances} maintenances of {operator.maintained} hosts; "
            f"{len(books.died)} hosts died: {len(operator.evacuations)} evacuations"
        )
        story = "\n".join(
            [*weather.story[-100:], str(weather.done), str(books.answers), str(moves), operated]
        )
        assert not wrong, f"seed {seed}:\n{story}\n" + "\n".join(wrong[:50])
        assert is_enough() and has_moved(moves, operator), f"hardly anything happened:\n{story}"
        # A program that cannot reach a database at its start may end with 2; it is started again.
        ended = {program.name: program.ended for program in made.programs if {*program.ended} - {2}}
        assert not ended, f"{ended}\n{made.logs[-10_000:]}"


def has_moved(moves: Counter[str], operator: Operator) -> bool:
    is_maintained = operator.maintained > 0 or not operator.maintains
    return moves["done"] + moves["reverted"] > LEAST and operator.drains > 0 and is_maintained


def wait_for_moves(made: Cloud, operator: Operator) -> Counter[str]:
    """How many moves have ended in each state, once they are enough or it has taken long."""
    until = Deadline(SETTLE_SECONDS)
    with httpx.Client(headers=HEADERS, timeout=patience(60)) as http:
        wait_until_ready(http, made)
        while True:
            moves = ended_moves(http, made.conductors[0])
            if has_moved(moves, operator) or until.passed:
                return moves
            time.sleep(1.0)


def check(made: Cloud, books: Books) -> list[str]:
    """What is wrong once everybody is well and nobody has work to do."""
    with httpx.Client(headers=HEADERS, timeout=patience(60)) as http:
        wait_until_ready(http, made)
        shown = settled(http, made.conductors[0], books, SETTLE_SECONDS)
        until = Deadline(LATE_SECONDS)
        while wrong := compared(http, made, shown, books):
            if until.passed:
                break
            time.sleep(1.0)
            # A deletion that a stopped conductor had not read yet is carried out after all.
            shown = settled(http, made.conductors[0], books, SETTLE_SECONDS)
        wrong += disabled_hosts(http, made.conductors[0])
    wrong += overlaps(all_events(made.guests))
    findings, unread, _ = asyncio.run(verify_database(made.api, source=Source((str(made.config),))))
    wrong += [str(each) for each in (*findings, *unread)]
    return [f"{states(shown.values())}", *wrong] if wrong else []


def compared(http: httpx.Client, made: Cloud, shown: dict[str, dict[str, Any]], books: Books) -> list[str]:
    """What is wrong now; all well processes answer."""
    try:
        drawn = asyncio.run(drawn_consumers(made, {*shown, *books.accepted}))
        there = found(http, made.placement, shown, books, made.guests, drawn)
    except httpx.HTTPError as error:
        return [repr(error)]
    return differences(books, there, made.shapes)


async def drawn_consumers(made: Cloud, instances: Collection[str]) -> dict[str, str]:
    """The consumers that were drawn when some instances were unshelved, each with its instance."""
    database = Database(made.api)
    try:
        return await database.read(find_consumers(tuple(instances)))
    finally:
        await database.close()


def audit(made: Cloud) -> list[str]:
    """What the conductors' audit says once nothing is wrong by `check`."""
    with httpx.Client(headers=HEADERS, timeout=patience(60)) as http:
        return audited(http, made.conductors[0], SETTLE_SECONDS)


def wait_until_ready(http: httpx.Client, made: Cloud) -> None:
    until = Deadline(SETTLE_SECONDS)
    for url in (*made.conductors, made.placement):
        while True:
            try:
                if http.get(f"{url}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            assert not until.passed, f"{url} is not ready\n{made.logs[-10_000:]}"
            made.heal()
            time.sleep(0.2)


@contextlib.contextmanager
def started(servers: Servers, kind: str) -> Iterator[ServerProcess]:
    """A server of a kind for a cloud. Of a Galera cluster it is a node, and the weather falls on that one."""
    server = servers.new(kind, "chaos")
    try:
        server.start()
        yield server.nodes[1] if isinstance(server, Galera) else server
    finally:
        server.kill()


def test_two_minutes_in_bad_weather(tmp_path: Path, servers: Servers) -> None:
    """With the start of all processes, and with what is checked at the end, it takes two minutes."""
    with started(servers, "postgresql") as server:
        run(
            tmp_path,
            server,
            "weather",
            hosts=60,
            agents=2,
            users=6,
            lifetimes=20_000,
            seconds=90.0,
            rest=0.03,
        )


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "galera"])
def test_twenty_thousand_lifetimes_in_bad_weather(tmp_path: Path, servers: Servers, kind: str) -> None:
    with started(servers, kind) as server:
        run(
            tmp_path,
            server,
            f"{nightly_seed()}",
            hosts=300,
            agents=2,
            users=12,
            lifetimes=20_000,
            seconds=6 * 3600.0,
            maintains=True,
        )
