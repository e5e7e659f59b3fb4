"""Reports of an agent against Nova's report client: the same calls of placement, and the same states."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from differential.services import Roost, Upstream
from roost.agents.questions import ReadTree, WriteProviders
from roost.agents.types import SessionKey
from roost.auth.credentials import FixedCredentials
from roost.compute.driving import FillTree
from roost.compute.keeping import MemoryState
from roost.compute.provider_tree import ProviderTree
from roost.compute.reporting import report_providers
from roost.conductor.agents.relay import ProviderRelay
from roost.ledger import Ledger
from roost.machine import Performer
from roost.model.inventory import Inventory
from roost.placement.client import HttpPlacement
from roost.storage import Database
from support.drivers import HeldDriver
from support.nova import Nova
from support.seeds import nightly_seed
from support.told_calls import Call, ToldService, within

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
SESSION = SessionKey("host", "nonce", 1)
ROOT = "11111111-0000-4000-8000-000000000000"
CHILDREN = {f"c{number}": f"22222222-0000-4000-8000-{number:012}" for number in range(4)}
AGGREGATES = tuple(f"33333333-0000-4000-8000-{number:012}" for number in range(2))
TRAITS = ("CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX")
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_LICENSE")
UPDATES = 4

Operations = list[list[Any]]


class Drawn:
    """What a driver does to its tree at each of some updates, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._there = {"host": ""}
        self._gone: dict[str, str] = {}

    def updates(self) -> list[Operations]:
        return [self._update() for _ in range(UPDATES)]

    def _update(self) -> Operations:
        # Nova's client neither moves nor renames: what went within an update comes back where it was.
        self._gone = {}
        return [self._operation() for _ in range(self._random.choice((0, 2, 5, 8)))]

    def _operation(self) -> list[Any]:
        name = self._random.choice([*self._there])
        match self._random.choice(("child", "child", "remove", "inventory", "inventory", "set", "set")):
            case "child":
                child = self._random.choice([*CHILDREN])
                if child not in self._there and self._gone.get(child, name) == name:
                    self._there[child] = name
                    return ["new_child", [child, name, CHILDREN[child]]]
            case "remove" if name != "host":
                self._remove(name)
                return ["remove", [name]]
            case "set":
                what, names = self._random.choice((("traits", TRAITS), ("aggregates", AGGREGATES)))
                some = self._some(names)
                if self._random.random() < 0.4:
                    return [f"update_{what}", [name, some]]
                return [f"{self._random.choice(('add', 'remove'))}_{what}", [name, *some]]
        return ["update_inventory", [name, {each: self._record() for each in self._some(CLASSES)}]]

    def _remove(self, name: str) -> None:
        self._gone[name] = self._there.pop(name)
        for child in [each for each, parent in self._there.items() if parent == name]:
            self._remove(child)

    def _record(self) -> dict[str, Any]:
        optional = {"reserved": 1, "allocation_ratio": 2.0, "max_unit": 2}
        return {
            "total": self._random.choice((2, 3)),
            **{name: optional[name] for name in self._some(optional)},
        }

    def _some(self, names: Any) -> list[Any]:
        return [name for name in names if self._random.random() < 0.4]


class Playing(HeldDriver):
    """A driver that does to its tree what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Operations = []

    def update_provider_tree(self, tree: ProviderTree, nodename: str, allocations: Any = None) -> None:
        for method, arguments in self.operations:
            getattr(tree, method)(*arguments)


async def played(service: ToldService, updates: list[Operations]) -> None:
    """What `play` of tests/nova/upstream/report_client.py does, with an agent's reports."""
    driver, state = Playing(), MemoryState()
    async with HttpPlacement(
        FixedCredentials("http://placement", "admin"), client=within(service)
    ) as placement:
        relay = ProviderRelay(placement)

        async def filled(question: Any) -> Any:
            assert isinstance(question, FillTree)
            driver.update_provider_tree(question.tree, question.node)
            return question.tree

        async def cell(question: Any) -> Any:
            if isinstance(question, ReadTree):
                return await relay.read(question.root)
            assert isinstance(question, WriteProviders)
            return await relay.write(question.root, question.writes)

        services = {"cell": cell, "driver": filled, "state": state.ask}
        performer = Performer(lambda name: None, services)  # type: ignore[arg-type, return-value]
        for driver.operations in updates:
            applied = state.applied.get("host", {})
            reported = await performer.run(report_providers(SESSION, "host", ROOT, applied))
            assert reported.refusals == ()


def writes(calls: list[Call]) -> Counter[str]:
    """The calls that change providers, in a form that is the same whatever the order of names is, and
    whether a record names its defaults. Without generations: each client knows those of its own order."""
    return Counter(
        repr(_plain(call)) for call in calls if not call.path.startswith(("/traits", "/resource_c"))
    )


def names_made(calls: list[Call]) -> set[str]:
    """The custom classes and traits that were made."""
    return {call.path for call in calls if call.path.startswith(("/traits", "/resource_c"))}


def _plain(call: Call) -> tuple[Any, ...]:
    body = {name: each for name, each in (call.body or {}).items() if each is not None}
    body.pop("resource_provider_generation", None)
    for name in ("traits", "aggregates"):
        if name in body:
            body[name] = sorted(body[name])
    if "inventories" in body:
        records = body["inventories"].items()
        body["inventories"] = {
            name: msgspec.structs.astuple(msgspec.convert(each, Inventory)) for name, each in sorted(records)
        }
    return call.method, call.path, sorted(body.items()), call.status


def state_of(service: ToldService) -> Any:
    """The tree with all that its providers have, generations included."""
    headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

    def read(url: str) -> Any:
        return service.ask("GET", url, b"", headers).json

    found = {}
    for each in read(f"/resource_providers?in_tree={ROOT}")["resource_providers"]:
        base = f"/resource_providers/{each['uuid']}"
        has = [read(f"{base}/{what}")[what] for what in ("inventories", "traits", "aggregates")]
        found[each["uuid"]] = (
            each["name"],
            each["parent_provider_uuid"],
            each["generation"],
            has[0],
            *map(sorted, has[1:]),
        )
    return found


@pytest.fixture(scope="module", params=["roost", "openstack"])
def service(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A placement service, Roost's or OpenStack's."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        if request.param == "openstack":
            found: Any = Upstream()
        else:
            empty = Path(folder, "empty.db")
            asyncio.run(_fill(empty))
            found = Roost(Path(folder), empty)
        yield found
        found.close()


async def _fill(path: Path) -> None:
    database = Database(f"sqlite:///{path}")
    await (await Ledger.open(database)).close()
    await database.close()


@pytest.mark.parametrize("count", [15, pytest.param(500, marks=pytest.mark.nightly)])
def test_reports_make_the_calls_that_novas_client_makes(nova: Nova, service: Any, count: int) -> None:
    for seed in range(nightly_seed(), nightly_seed() + count):
        updates = Drawn(seed).updates()
        service.reset()
        theirs = ToldService(service)
        with theirs.served() as url:
            outcomes = nova.ask("report_client", "play", url=url, root=ROOT, name="host", updates=updates)
        assert outcomes == [None] * UPDATES, f"seed {seed}"
        their_state = state_of(theirs)
        service.reset()
        ours = ToldService(service)
        asyncio.run(played(ours, updates))
        assert state_of(ours) == their_state, f"seed {seed}"
        assert writes(ours.calls) == writes(theirs.calls), f"seed {seed}"
        assert names_made(ours.calls) == names_made(theirs.calls), f"seed {seed}"
