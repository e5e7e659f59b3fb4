"""Reports of an agent against Nova's report client: the same calls of placement, and the same states."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from differential.services import Roost, Upstream
from roost.ledger import Ledger
from roost.model.inventory import Inventory
from roost.storage import Database
from support.nova import Nova
from support.reported_trees import Operations, Reporting, state_of
from support.seeds import nightly_seed
from support.told_calls import Call, ToldService

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROOT = "11111111-0000-4000-8000-000000000000"
CHILDREN = {f"c{number}": f"22222222-0000-4000-8000-{number:012}" for number in range(4)}
AGGREGATES = tuple(f"33333333-0000-4000-8000-{number:012}" for number in range(2))
TRAITS = ("CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX")
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_LICENSE")
UPDATES = 4


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
        theirs, ours = compared(nova, service, updates)
        assert theirs.outcomes == ours.outcomes == [None] * UPDATES, f"seed {seed}"
        assert ours.state == theirs.state, f"seed {seed}"
        assert writes(ours.calls) == writes(theirs.calls), f"seed {seed}"
        assert names_made(ours.calls) == names_made(theirs.calls), f"seed {seed}"


class Compared(NamedTuple):
    """What came of updates, the calls that were made, and the tree at the end."""

    outcomes: list[str | None]
    calls: list[Call]
    state: Any


def compared(
    nova: Nova, service: Any, updates: list[Operations], moves: Any = (), before: Any = ()
) -> tuple[Compared, Compared]:
    """Nova's client and an agent at the same updates of an empty service, after some calls of others."""
    service.reset()
    told = ToldService(service)
    with told.served() as url:
        asked = {"url": url, "root": ROOT, "name": "host", "updates": updates}
        outcomes = nova.ask("report_client", "play", moves=moves, **asked)
    theirs = Compared(outcomes, told.calls, state_of(service, ROOT))
    service.reset()
    told = ToldService(service)
    outcomes = asyncio.run(Reporting(told, ROOT, "host").play(updates, moves))
    return theirs, Compared(outcomes, told.calls, state_of(service, ROOT))


C0, C1 = CHILDREN["c0"], CHILDREN["c1"]
CONSUMERS = tuple(f"44444444-0000-4000-8000-{number:012}" for number in range(2))
OTHER = "55555555-0000-4000-8000-000000000000"
MADE = ["ensure_child", ["c0", "host", C0]]


def has(name: str, **totals: int) -> list[Any]:
    return ["update_inventory", [name, {each: {"total": total} for each, total in totals.items()}]]


def once(name: str, method: str, path: str, body: Any = None) -> list[Any]:
    return ["once", [name, method, path, body]]


def claim(consumer: str, provider: str, **resources: int) -> list[Any]:
    body = {
        "allocations": {provider: {"resources": resources}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return once(consumer, "PUT", f"/allocations/{consumer}", body)


CASES: dict[str, tuple[list[Operations], list[tuple[str, str] | None]]] = {
    "all may be reserved": (
        [[["update_inventory", ["host", {"CUSTOM_METAL": {"total": 1, "reserved": 1}}]]]],
        [None],
    ),
    "others change a trait meanwhile": (
        [
            [has("host", VCPU=4)],
            [
                once("a", "PUT", "/traits/CUSTOM_OTHERS"),
                once(
                    "b",
                    "PUT",
                    f"/resource_providers/{ROOT}/traits",
                    {"traits": ["CUSTOM_OTHERS"], "resource_provider_generation": 1},
                ),
                has("host", VCPU=5),
                ["add_traits", ["host", "CUSTOM_A"]],
            ],
        ],
        [None, None],
    ),
    "others make the same provider meanwhile": (
        [
            [],
            [
                once(
                    "a",
                    "POST",
                    "/resource_providers",
                    {"name": "c0", "uuid": C0, "parent_provider_uuid": ROOT},
                ),
                MADE,
                has("c0", VGPU=2),
            ],
        ],
        [None, None],
    ),
    "others delete a provider meanwhile": (
        [
            [MADE, has("c0", VGPU=1)],
            [once("a", "DELETE", f"/resource_providers/{C0}"), MADE, has("c0", VGPU=2)],
            [MADE, has("c0", VGPU=2)],
        ],
        [None, ("ResourceProviderSyncFailed", ""), None],
    ),
    "less than is in use": (
        [[has("host", VCPU=4)], [claim(CONSUMERS[0], ROOT, VCPU=3), has("host", VCPU=2)]],
        [None, None],
    ),
    "a class in use goes": (
        [[has("host", VCPU=4, VGPU=2)], [claim(CONSUMERS[0], ROOT, VGPU=1), has("host", VCPU=4)]],
        [None, ("InventoryInUse", "in use")],
    ),
    "a provider in use goes": (
        [[MADE, has("c0", VGPU=2)], [claim(CONSUMERS[0], C0, VGPU=1), ["remove", ["c0"]]]],
        [None, ("ResourceProviderSyncFailed", "Unable to delete resource provider")],
    ),
    "another provider has the name": (
        [[], [once("a", "POST", "/resource_providers", {"name": "c0", "uuid": OTHER}), MADE]],
        [None, ("ResourceProviderCreationFailed", "Conflicting resource provider name")],
    ),
    "no such class": ([[has("host", NO_SUCH=1)]], [("ResourceProviderSyncFailed", "NO_SUCH")]),
    "no such trait": ([[["add_traits", ["host", "NO_SUCH"]]]], [("ResourceProviderSyncFailed", "NO_SUCH")]),
    "more is reserved than there is": (
        [[["update_inventory", ["host", {"VCPU": {"total": 1, "reserved": 2}}]]]],
        [("ResourceProviderSyncFailed", "VCPU")],
    ),
}
"""Updates, and what came of each: None, or Nova's error and words of the agent's refusal.

Source: Nova's tests of its report client say what it is to do in such cases.
"""


@pytest.mark.parametrize("case", CASES)
def test_what_goes_wrong_leaves_what_it_leaves_with_novas_client(nova: Nova, service: Any, case: str) -> None:
    updates, outcomes = CASES[case]
    theirs, ours = compared(nova, service, updates)
    assert theirs.outcomes == [outcome and outcome[0] for outcome in outcomes]
    for said, outcome in zip(ours.outcomes, outcomes, strict=True):
        if outcome is None or not outcome[1]:
            # The agent reads again at once where Nova's waits for its next period.
            assert said is None
        else:
            assert said is not None and outcome[1] in said
    assert ours.state == theirs.state


def test_a_reshape_moves_what_novas_client_moves(nova: Nova, service: Any) -> None:
    flat = [has("host", VCPU=8, VGPU=4), ["ensure_child", ["c1", "host", C1]], has("c1", CUSTOM_LICENSE=1)]
    tree = [
        *(claim(consumer, ROOT, VCPU=2, VGPU=1) for consumer in CONSUMERS),
        has("host", VCPU=8),
        ["remove", ["c1"]],
        MADE,
        has("c0", VGPU=4),
        ["add_traits", ["c0", "CUSTOM_A"]],
    ]
    moves = [[consumer, "VGPU", ROOT, C0] for consumer in CONSUMERS]
    theirs, ours = compared(nova, service, [flat, [*tree[:2]], tree], moves)
    assert theirs.outcomes == ours.outcomes == [None, None, None]
    assert {uuid: each[:2] + each[3:] for uuid, each in ours.state.items()} == {
        uuid: each[:2] + each[3:] for uuid, each in theirs.state.items()
    }
    assert [call.status for call in ours.calls if call.path == "/reshaper"] == [204]


def test_a_reshape_that_does_not_add_up_changes_no_claim_and_no_inventory(nova: Nova, service: Any) -> None:
    claims = [claim(consumer, ROOT, VCPU=2, VGPU=2) for consumer in CONSUMERS]
    updates = [[has("host", VCPU=8, VGPU=4)], claims, [has("host", VCPU=8), MADE, has("c0", VGPU=3)]]
    moves = [[consumer, "VGPU", ROOT, C0] for consumer in CONSUMERS]
    theirs, ours = compared(nova, service, updates, moves)
    assert theirs.outcomes == [None, None, "ReshapeFailed"]
    assert ours.outcomes[:2] == [None, None] and ours.outcomes[2] is not None
    # The new provider is there already, and has nothing.
    assert ours.state == theirs.state
    assert ours.state[ROOT][3].keys() == {"VCPU", "VGPU"}
    assert (ours.state[C0][3], ours.state[C0][6]) == ({}, {})
