"""Several processes on one database: they see each other's writes, and together claim what there is, once."""

import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from support.databases import KINDS, Place, Servers
from support.ledgers import findings_in, upgrade
from support.placement_api import allocation, uuid_of
from support.serving import Serving, roost

CLIENTS = 16
_NUMBERS = count()


class Site:
    """Processes of ours on one database. ``servers``: on Galera one for each node, else one of two workers
    and one of one."""

    def __init__(self, place: Place, servers: list[Serving]) -> None:
        self.place = place
        self.servers = servers

    def provider(self, **totals: int) -> str:
        """A new provider with inventories."""
        name = f"p{next(_NUMBERS)}"
        [first, *_] = self.servers
        answer = first.ask("POST", "/resource_providers", {"name": name, "uuid": uuid_of(name)})
        assert answer.status_code < 300, answer.text
        body = {
            "inventories": {each: {"total": total} for each, total in totals.items()},
            "resource_provider_generation": 0,
        }
        answer = first.ask("PUT", f"/resource_providers/{uuid_of(name)}/inventories", body)
        assert answer.status_code == 200, answer.text
        return uuid_of(name)

    def used(self, provider: str) -> dict[str, int]:
        """What each process says is in use; they must agree."""
        path = f"/resource_providers/{provider}/usages"
        answers = [server.ask("GET", path).json()["usages"] for server in self.servers]
        assert all(answer == answers[0] for answer in answers)
        return answers[0]


@pytest.fixture(scope="module", params=KINDS)
def site(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(servers.place(request.param, folder))
        upgrade(place.url)
        running = []
        for number, workers in enumerate((1, 1, 1) if place.kind == "galera" else (2, 1)):
            running.append(Serving(place.at(number), folder / "log", workers))
            stack.callback(running[-1].end)
        yield Site(place, running)


def test_a_claim_is_seen_by_every_process_at_once(site: Site) -> None:
    provider = site.provider(VCPU=100)
    for number in range(10):
        path = f"/allocations/{uuid_of(f'c{next(_NUMBERS)}')}"
        writer = site.servers[number % len(site.servers)]
        assert writer.ask("PUT", path, allocation({provider: {"VCPU": 1}})).status_code == 204
        for reader in site.servers:
            assert reader.ask("GET", path).json()["allocations"].keys() == {provider}
            usages = reader.ask("GET", f"/resource_providers/{provider}/usages").json()["usages"]
            assert usages == {"VCPU": number + 1}


def test_clients_claim_exactly_what_few_hosts_have(site: Site) -> None:
    hosts = [site.provider(VCPU=15) for _ in range(3)]

    def claim(number: int) -> list[int]:
        """The statuses of a client's claims, which tries every host until one has room."""
        draw = random.Random(number)
        path = f"/allocations/{uuid_of(f'c{next(_NUMBERS)}')}"
        statuses = []
        for host in draw.sample(hosts, len(hosts)):
            answer = draw.choice(site.servers).ask("PUT", path, allocation({host: {"VCPU": 1}}))
            statuses.append(answer.status_code)
            if answer.status_code == 204:
                break
        return statuses

    with ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = list(pool.map(claim, range(60)))
    assert {status for statuses in outcomes for status in statuses} == {204, 409}
    assert sum(204 in statuses for statuses in outcomes) == 45
    assert [site.used(host) for host in hosts] == [{"VCPU": 15}] * 3
    assert findings_in(site.place) == []


def test_claims_over_two_providers_named_in_either_order_all_fit(site: Site) -> None:
    computes = [site.provider(VCPU=30) for _ in range(2)]
    pool = site.provider(DISK_GB=60)

    def claim(number: int) -> int:
        parts = [(computes[number % 2], {"VCPU": 1}), (pool, {"DISK_GB": 1})]
        held = dict(parts if number % 4 < 2 else reversed(parts))
        path = f"/allocations/{uuid_of(f'c{next(_NUMBERS)}')}"
        server = site.servers[number % len(site.servers)]
        return server.ask("PUT", path, allocation(held)).status_code

    with ThreadPoolExecutor(CLIENTS) as clients:
        statuses = list(clients.map(claim, range(60)))
    assert statuses == [204] * 60
    assert site.used(pool) == {"DISK_GB": 60}
    assert [claim(number) for number in range(2)] == [409, 409]
    assert findings_in(site.place) == []


@pytest.mark.parametrize("part", ["traits", "aggregates"])
def test_of_those_who_set_a_providers_belongings_at_once_one_does(site: Site, part: str) -> None:
    """Upstream answers 500 to who loses with traits, and on PostgreSQL at times with new aggregates."""
    path = f"/resource_providers/{site.provider(VCPU=1)}/{part}"

    def put(number: int) -> int:
        named = {"traits": ["HW_NUMA_ROOT"], "aggregates": [uuid_of(f"a{number}")]}[part]
        body = {part: named, "resource_provider_generation": 1}
        return site.servers[number % len(site.servers)].ask("PUT", path, body).status_code

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert sorted(clients.map(put, range(CLIENTS))) == [200] + [409] * (CLIENTS - 1)


def test_a_new_aggregate_may_be_named_for_many_providers_at_once(site: Site) -> None:
    providers = [site.provider(VCPU=1) for _ in range(CLIENTS)]
    body = {"aggregates": [uuid_of("shared")], "resource_provider_generation": 1}

    def put(number: int) -> int:
        path = f"/resource_providers/{providers[number]}/aggregates"
        return site.servers[number % len(site.servers)].ask("PUT", path, body).status_code

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert set(clients.map(put, range(CLIENTS))) == {200}
    found = site.servers[0].ask("GET", f"/resource_providers?member_of={uuid_of('shared')}").json()
    assert {each["uuid"] for each in found["resource_providers"]} == set(providers)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_an_unprepared_database_is_refused_with_what_to_run(servers: Servers, kind: str, tmp_path) -> None:
    with servers.place(kind, tmp_path) as place:
        done = roost("serve", "--database", place.url)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "has no ledger tables: run 'roost db upgrade' with --database" in done.stderr
        assert roost("db", "upgrade", "--database", place.url).returncode == 0
        assert roost("db", "version", "--database", place.url).returncode == 0
