"""Clouds for the scheduler's tests: what placement knows of hosts, and what the hosts report of themselves.

A `Cloud` is plain data: `fill` puts it into a ledger, `Cloud.table` makes the node table.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from hypothesis import strategies as st

from roost.ledger import Command, Ledger
from roost.model.aggregate import HostAggregate
from roost.model.allocation import Allocations
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.model.node_event import AggregateSet, MembershipsSet
from roost.model.record import Attempt, Run, RunReasons
from roost.model.request import RequestGroup, all_of
from roost.model.spec import Flavor, RequestedDestination, RequestSpec, ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT, SHARING_TRAIT
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddResourceClass, AddTrait
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.placement.http.app import create_app, document_at
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.v1.app import V1
from roost.scheduler.nodes.table import NodeTable
from roost.storage import Database
from roost.web.auth.credentials import FixedCredentials
from roost.web.dispatch import dispatch

NOW = 1_000_000.0
"""Seconds since the epoch at which the tests' schedulers decide."""

GPU = "CUSTOM_GPU"
TRAITS = ("CUSTOM_FAST", "CUSTOM_RED")
AGGREGATES = tuple(f"00000000-0000-0000-0000-0000000000a{number}" for number in range(4))
ZONES = ("az0", "az1")


def uuid_of(number: int) -> str:
    """A uuid made of a number."""
    return f"00000000-0000-4000-8000-{number:012x}"


@dataclass
class Provider:
    """A provider as placement knows it. ``used``: what one consumer of its own holds there already."""

    uuid: str
    inventories: dict[str, Inventory]
    parent: str | None = None
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: dict[str, int] = field(default_factory=dict)


@dataclass
class Cloud:
    """Providers, parents first, and the reports of hosts in the order that they come in."""

    providers: list[Provider]
    reports: list[NodeReport]

    def table(self) -> NodeTable:
        return table_of(self.reports)


class InAggregates(NodeReport, frozen=True, kw_only=True, omit_defaults=True):
    """The report of a node, and the host aggregates that the node is in, which agents do not report."""

    aggregates: tuple[HostAggregate, ...] = ()


def tell(table: NodeTable, reports: Iterable[NodeReport]) -> None:
    """Put reports into a table, and the nodes into their host aggregates."""
    reports = list(reports)
    table.update(reports)
    for each in reports:
        if isinstance(each, InAggregates):
            join(table, each.node, *each.aggregates)


def join(table: NodeTable, node: str, *aggregates: HostAggregate) -> None:
    """Put a node into these host aggregates and no others."""
    events = [*map(AggregateSet, aggregates)]
    table.apply_to_aggregates(
        *events, MembershipsSet(node, tuple(sorted({each.uuid for each in aggregates})))
    )


def table_of(reports: Iterable[NodeReport]) -> NodeTable:
    """A table of these reports, with the nodes in their host aggregates."""
    table = NodeTable()
    tell(table, reports)
    return table


def report(name: str, node: str, **more: object) -> InAggregates:
    """A host that was seen a moment ago."""
    return InAggregates(**{"host": name, "node": node, "cell": "cell1", "last_seen": NOW - 1, **more})  # type: ignore[arg-type]


def flat(count: int, vcpus: int = 8, memory_mb: int = 8192, disk_gb: int = 100, **more: object) -> Cloud:
    """So many equal hosts, ``host0`` and on, each a provider by itself."""
    inventories = {
        "VCPU": Inventory(vcpus),
        "MEMORY_MB": Inventory(memory_mb),
        "DISK_GB": Inventory(disk_gb),
    }
    return Cloud(
        [Provider(uuid_of(number), dict(inventories)) for number in range(count)],
        [report(f"host{number}", uuid_of(number), **more) for number in range(count)],
    )


def spec(vcpus: int = 1, memory_mb: int = 1024, disk_gb: int = 10, **more: object) -> RequestSpec:
    """A request; ``extra_specs`` go to its flavor, ``requested_host`` to its destination."""
    extra_specs = more.pop("extra_specs", {})
    if "requested_host" in more:
        more["requested_destination"] = RequestedDestination(host=str(more.pop("requested_host")))
    flavor = Flavor("small", vcpus, memory_mb, disk_gb, extra_specs)  # type: ignore[arg-type]
    return RequestSpec(**{"project_id": "project", "user_id": "user", "flavor": flavor, **more})  # type: ignore[arg-type]


async def fill(ledger: Ledger, cloud: Cloud) -> None:
    """Put a cloud's providers into a ledger, all in one commit."""
    commands: list[Command[object]] = []
    classes = {name for each in cloud.providers for name in each.inventories}
    commands += [AddResourceClass(name) for name in sorted({GPU} | classes) if name.startswith("CUSTOM_")]
    commands += [AddTrait(name) for name in TRAITS]
    for number, each in enumerate(cloud.providers):
        commands.append(CreateProvider(each.uuid, f"name of {each.uuid}", each.parent))
        commands.append(SetInventories(each.uuid, each.inventories, None))
        commands.append(SetTraits(each.uuid, each.traits, None, add_custom=True))
        commands.append(SetAggregates(each.uuid, each.aggregates, None))
        if each.used:
            commands.append(WriteAllocations((holding(uuid_of(0xF000 + number), {each.uuid: each.used}),)))
    await asyncio.gather(*(ledger.execute(command) for command in commands))


def holding(consumer: str, allocations: Allocations) -> ConsumerWrite:
    """A write that gives a new consumer these allocations."""
    return ConsumerWrite(
        consumer=consumer, allocations=allocations, project_id="p", user_id="u", generation=None
    )


@asynccontextmanager
async def filled(path: Path, cloud: Cloud, empty: Path | None = None) -> AsyncIterator[Ledger]:
    """A ledger on a SQLite file that has a cloud's providers. ``empty``: a file to start from."""
    if empty is not None:
        shutil.copy(empty, path)
    database = Database(f"sqlite:///{path}")
    ledger = await Ledger.open(database)
    try:
        await fill(ledger, cloud)
        yield ledger
    finally:
        await ledger.close()
        await database.close()


@asynccontextmanager
async def over_http(
    ledger: Ledger, kind: type[HttpPlacement] = HttpPlacement
) -> AsyncIterator[HttpPlacement]:
    """A client of the Placement API and ``/v1`` on a ledger, without a socket. ``kind``: its class."""
    options = PlacementOptions(auth_strategy="noauth2")
    v1 = V1(ledger, options, QueryBudget(ledger, options.limits), document_at)
    app = dispatch({"/v1": v1}, create_app(ledger, options))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app))
    async with kind(FixedCredentials("http://placement", "admin"), client=client) as placement:
        yield placement
    v1.close()


class Kept:
    """Records in a list."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.attempts: list[Attempt] = []
        self.reasons: list[RunReasons] = []

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        self.runs += runs
        self.attempts += attempts
        self.reasons += reasons


# Random clouds and requests

_MOSTLY = st.sampled_from([*[True] * 11, False])


@st.composite
def clouds(draw: st.DrawFn, max_hosts: int = 8) -> Cloud:
    """Flat hosts, hosts with devices or NUMA nodes below them, hosts that live on a shared disk; some
    unknown to placement, some unknown to the table; in an order of their own in the table."""
    providers: list[Provider] = []
    reports: list[NodeReport] = []
    for number in range(draw(st.sampled_from([1, 2, 0]))):
        disk = {"DISK_GB": Inventory(draw(st.integers(20, 120)))}
        traits = frozenset({SHARING_TRAIT})
        providers.append(Provider(uuid_of(0xE000 + number), disk, None, traits, draw(_some(AGGREGATES, 1))))
    for number in range(draw(st.integers(3, max_hosts))):
        tree = draw(_trees(number))
        aggregates = tree[0].aggregates
        if draw(_MOSTLY):
            providers += tree
        if draw(_MOSTLY):
            reports.append(draw(_reports(number, aggregates)))
    return Cloud(providers, draw(st.permutations(reports)))


@st.composite
def _trees(draw: st.DrawFn, number: int) -> list[Provider]:
    root = Provider(
        uuid_of(number),
        {
            "VCPU": _inventory(draw, 1, 8),
            "MEMORY_MB": _inventory(draw, 1024, 8192),
            "DISK_GB": _inventory(draw, 10, 80),
        },
        traits=draw(st.sampled_from(_ROOT_TRAITS)),
        aggregates=draw(_some(AGGREGATES, 1, 2)),
    )
    kind = draw(st.sampled_from(["flat", "flat", "devices", "numa", "diskless"]))
    children: list[Provider] = []
    for child in range(draw(st.integers(1, 3))):
        uuid = uuid_of(number * 16 + child + 0x1000)
        has: dict[str, Inventory] = {}
        if kind == "devices":
            has = {GPU: _inventory(draw, 1, 3)}
        elif kind == "numa":
            has = {"VCPU": _inventory(draw, 1, 6), "MEMORY_MB": _inventory(draw, 1024, 4096)}
        if has:
            children.append(Provider(uuid, has, root.uuid, draw(_some(TRAITS))))
    if kind == "numa":
        root.inventories = {"DISK_GB": root.inventories["DISK_GB"]}
    if kind == "diskless":
        root.inventories.pop("DISK_GB")
    for provider in (root, *children):
        for name, inventory in provider.inventories.items():
            if draw(st.booleans()) and inventory.capacity > 1:
                provider.used[name] = draw(st.integers(1, inventory.capacity // 2))
    return [root, *children]


_ROOT_TRAITS = [
    *[frozenset[str]()] * 3,
    *[frozenset({"CUSTOM_FAST"})] * 2,
    frozenset({"CUSTOM_RED"}),
    frozenset({"CUSTOM_FAST", "CUSTOM_RED"}),
    frozenset({DISABLED_TRAIT}),
]


def _inventory(draw: st.DrawFn, least: int, most: int) -> Inventory:
    # Few different totals: equal hosts are the usual case, and ties must be broken alike.
    return Inventory(draw(st.sampled_from([least, (least + most) // 2, most])))


@st.composite
def _reports(draw: st.DrawFn, number: int, aggregates: Iterable[str]) -> NodeReport:
    plain = report(f"host{number}", uuid_of(number))
    return replace_report(
        plain,
        cell=draw(st.sampled_from(["cell1", "cell1", "cell2"])),
        last_seen=NOW - draw(st.sampled_from([*[1.0] * 9, 90.0])),
        enabled=draw(st.sampled_from([*[True] * 9, False])),
        failed_builds=draw(st.sampled_from([0, 0, 0, 2])),
        metrics={"heat": draw(st.sampled_from([20.0, 40.0]))} if draw(st.booleans()) else {},
        aggregates=tuple(
            HostAggregate(uuid, uuid, _METADATA[AGGREGATES.index(uuid)]) for uuid in sorted(aggregates)
        ),
    )


_METADATA: list[dict[str, str]] = [
    {"availability_zone": "az0"},
    {"availability_zone": "az1", "ram_weight_multiplier": "-1"},
    {"ssd": "yes"},
    {"ssd": "no", "cpu_weight_multiplier": "2.5"},
]


def replace_report(old: NodeReport, **new: object) -> InAggregates:
    """A report with some things different."""
    fields = InAggregates.__struct_fields__
    return InAggregates(**{name: new.get(name, getattr(old, name, ())) for name in fields})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ask:
    """One call of `select_destinations`."""

    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int
    num_alternates: int


@st.composite
def asks(draw: st.DrawFn, number: int) -> Ask:
    """Requests with at most a few wishes; many of them can be met in many of `clouds`."""
    count = draw(st.integers(1, 4))
    wishes: dict[str, object] = {}
    extra: dict[str, str] = {}
    for wish in draw(st.lists(st.sampled_from(_WISHES), max_size=2)):
        if wish == "extra_specs":
            extra.update([draw(st.sampled_from(_EXTRA_SPECS))])
        elif wish == "requested_resources":
            wishes[wish] = draw(st.sampled_from(_GROUPS))
            extra["group_policy"] = draw(st.sampled_from(["none", "isolate"]))
        elif wish == "group":
            policy = draw(st.sampled_from(["affinity", "anti-affinity", "anti-affinity"]))
            members = draw(st.lists(st.sampled_from([*_HOSTS, "elsewhere"]), max_size=2))
            # A group of its own: one group has one policy, and its members from earlier requests would be
            # known to the ledger and not to a spec with drawn hosts.
            wishes[wish] = ServerGroup(f"group{number}", policy, tuple(members), draw(st.integers(1, 2)))
        elif wish == "availability_zone":
            wishes[wish] = draw(st.sampled_from(["az0", "az1", "nova"]))
        elif wish == "required_traits":
            wishes[wish] = draw(_some(TRAITS, 1, 1))
        elif wish == "ignore_hosts":
            wishes[wish] = draw(_some(_HOSTS, 1, 2))
        else:
            wishes[wish] = draw(st.sampled_from(_HOSTS))
    return Ask(
        spec(
            1,
            draw(st.sampled_from([512, 1024])),
            draw(st.sampled_from([5, 10, 0])),
            extra_specs=extra,
            **wishes,
        ),
        tuple(uuid_of(0xA00000 + number * 16 + instance) for instance in range(count)),
        draw(st.sampled_from([1, count])),
        draw(st.integers(0, 3)),
    )


_HOSTS = [f"host{host}" for host in range(6)]
_WISHES = [
    "extra_specs",
    "extra_specs",
    "requested_resources",
    "requested_resources",
    "group",
    "group",
    "availability_zone",
    "required_traits",
    "ignore_hosts",
    "requested_host",
]
_EXTRA_SPECS = [
    ("trait:CUSTOM_FAST", "required"),
    ("trait:CUSTOM_RED", "forbidden"),
    ("aggregate_instance_extra_specs:ssd", "yes"),
    ("ssd", "<or> yes <or> no"),
    (f"resources:{GPU}", "1"),
    ("resources_d:CUSTOM_GPU", "1"),
    ("trait_d:CUSTOM_RED", "required"),
    ("resources:DISK_GB", "0"),
    ("resources:CUSTOM_NOWHERE", "1"),
]
_GROUPS = [
    (RequestGroup({GPU: 1}, "_port1"),),
    (RequestGroup({GPU: 1}, "_port1"), RequestGroup({GPU: 1}, "_port2")),
    (RequestGroup({GPU: 2}, "_port1", all_of("CUSTOM_FAST")), RequestGroup({GPU: 1}, "_port2")),
    (RequestGroup({"VCPU": 1}, "_numa0"), RequestGroup({"VCPU": 1}, "_numa1")),
]


def _some(names: Sequence[str], least: int = 0, most: int | None = None) -> st.SearchStrategy[frozenset[str]]:
    size = len(names) if most is None else most
    return st.sets(st.sampled_from(names), min_size=least, max_size=size).map(frozenset)
