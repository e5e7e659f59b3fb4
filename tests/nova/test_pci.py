"""PCI pools and aliases against Nova's ``PciDeviceStats`` and ``get_pci_requests_from_flavor``.

What may differ is in the table of docs/differences.md; `DIFFERENT` says when each row applies.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet.hardware.pci_aliases import aliases_from, requested_by
from roost.fleet.hardware.pci_choice import FreePools, providers_of
from roost.fleet.hardware.pci_placement import groups_of
from roost.model.assignment import AssignedDevices
from roost.model.spec import PciRequest
from support.nova import ROOT, Nova, NovaError

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]

IDS = [("8086", "154d"), ("8086", "10ed"), ("10de", "2236")]
TYPES = ["type-PCI", "type-PF", "type-VF", "vdpa"]
ADDRESSES = ["0000:81:00.0", "0000:82:00.0", "0000:83:00.0"]
PROVIDERS = {at: f"provider-{number}" for number, at in enumerate(ADDRESSES)}


class Case(msgspec.Struct):
    """One node and requests for its devices."""

    pools: list[dict[str, Any]]
    requests: list[PciRequest]
    mappings: dict[str, list[str]] | None
    cells: list[int] | None
    sockets: list[tuple[int, int | None]]


_tags = st.fixed_dictionaries(
    {},
    optional={
        "physical_network": st.sampled_from(["physnet1", "PhysNet1", "physnet2", None]),
        "remote_managed": st.sampled_from(["true", "false", "True"]),
        "live_migratable": st.sampled_from(["true", "false"]),
        "trusted": st.sampled_from(["true", "false"]),
        "address": st.sampled_from(ADDRESSES),
    },
)


@st.composite
def _pools(draw: st.DrawFn) -> list[dict[str, Any]]:
    in_placement = draw(st.booleans())
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _ in range(draw(st.sampled_from([8, 5, 3, 12, 1, 0]))):
        vendor, product = draw(st.sampled_from(IDS))
        pool: dict[str, Any] = {
            "vendor_id": vendor,
            "product_id": product,
            "dev_type": draw(st.sampled_from(TYPES)),
            "numa_node": draw(st.sampled_from([None, 0, 1, 2, 3])),
            **draw(_tags),
        }
        if in_placement and "address" in pool and "physical_network" not in pool:
            pool["rp_uuid"] = PROVIDERS[pool["address"]]
        # A node reports one pool of equal devices.
        found.setdefault(tuple(sorted(pool.items(), key=lambda item: item[0])), pool)
        pool["count"] = draw(st.sampled_from([4, 1, 2, 8]))
    return list(found.values())


_specs: st.SearchStrategy[dict[str, str | None]] = st.sampled_from(
    [
        {},
        {"product_id": "2236"},
        {"product_id": "10ed"},
        {"dev_type": "type-PCI"},
        {"dev_type": "type-VF"},
        {"dev_type": "type-PF"},
        {"dev_type": "vdpa"},
        {"physical_network": "physnet1", "remote_managed": "False"},
        {"physical_network": None},
        {"remote_managed": "True"},
        {"live_migratable": "true"},
        {"live_migratable": "false"},
        {"resource_class": "CUSTOM_X", "traits": "CUSTOM_Y", "dev_type": "type-VF"},
    ]
)


@st.composite
def _requests(draw: st.DrawFn) -> list[PciRequest]:
    return [
        PciRequest(
            id=f"request-{number}",
            count=draw(st.sampled_from([1, 2, 3, 5])),
            specs=tuple(draw(st.lists(_specs, min_size=1, max_size=2))),
            alias=draw(st.sampled_from([None, "alias"])),
            numa_policy=draw(st.sampled_from([None, "legacy", "preferred", "required", "socket"])),
        )
        for number in range(draw(st.sampled_from([1, 2, 1, 3])))
    ]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pools, requests = draw(_pools()), draw(_requests())
    mappings: dict[str, list[str]] | None = None
    if any("rp_uuid" in pool for pool in pools) and draw(st.booleans()):
        mappings = {"": ["root"]}
        there = [pool["rp_uuid"] for pool in pools if "rp_uuid" in pool] or [*PROVIDERS.values()]
        for each in requests:
            if each.alias is not None:
                provider = draw(st.sampled_from(there))
                for number in range(each.count):
                    mappings[f"{each.id}-{number}"] = [provider]
    sockets = draw(st.sampled_from([[0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 1, None]]))
    return Case(
        pools,
        requests,
        mappings,
        draw(st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)),
        list(enumerate(sockets)),
    )


def _asks_for_a_part_and_the_whole(case: Case) -> bool:
    kinds: dict[str, set[str]] = {}
    for pool in case.pools:
        kinds.setdefault(pool.get("address", ""), set()).add(pool["dev_type"])
    cards = [types for address, types in kinds.items() if address]
    specs = [spec for each in case.requests for spec in each.specs]
    return (
        any("type-PF" in types and types & {"type-VF", "vdpa"} for types in cards)
        and any(spec.get("dev_type") == "type-PF" for spec in specs)
        and any(spec.get("dev_type") != "type-PF" for spec in specs)
    )


def _splits_a_provider(case: Case) -> bool:
    times = Counter(pool["rp_uuid"] for pool in case.pools if "rp_uuid" in pool)
    return case.mappings is not None and any(number > 1 for number in times.values())


def _lacks_a_provider(case: Case) -> bool:
    """Whether a candidate names a provider that has not as many devices for the request."""
    has: Counter[str] = Counter()
    for pool in case.pools:
        has[pool.get("rp_uuid", "")] = pool["count"]
    asked = [providers_of(each, case.mappings) for each in case.requests]
    return any(len(each) > 1 for each in asked)


DIFFERENT: dict[str, Callable[[Case], bool]] = {
    "a physical function and a virtual one of it in one request": _asks_for_a_part_and_the_whole,
    "a candidate with several providers, one of which lacks devices": _lacks_a_provider,
    "a provider with several pools": _splits_a_provider,
}
"""Row of the table -> whether it may apply to a case."""


def left_of(case: Case, chosen: tuple[AssignedDevices, ...]) -> Counter[str]:
    """The devices left in each pool."""
    left = Counter({pool.key: pool.count for pool in FreePools.reported(case.pools).pools})
    left.subtract(Counter(dict.fromkeys(left, 0)))
    for each in chosen:
        left[each.pool] -= each.count
    return +left


def compare(nova: Nova, many: list[Case]) -> None:
    answers = nova.ask("pci", "left_after", cases=msgspec.to_builtins(many))
    for case, theirs in zip(many, answers, strict=True):
        pools = FreePools.reported(case.pools)
        mappings, sockets = case.mappings, dict(case.sockets)
        chosen = pools.choose(case.requests, case.cells, sockets, mappings)
        if any(applies(case) for applies in DIFFERENT.values()):
            # Whatever Roost chooses in these cases, Nova accepts.
            assert chosen is None or theirs is not None or _splits_a_provider(case)
            continue
        assert (chosen is None) == (theirs is None), case
        if chosen is not None:
            counts = {pool.key: pool.count for pool in FreePools.reported(theirs).pools}
            assert left_of(case, chosen) == counts, case


MANY = st.lists(cases(), min_size=1, max_size=20)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(MANY)
def test_devices_are_chosen_as_by_nova(nova: Nova, many: list[Case]) -> None:
    compare(nova, many)


@pytest.mark.nightly
@settings(max_examples=500, deadline=None, suppress_health_check=SLOW)
@given(MANY)
def test_devices_of_thousands_of_nodes_are_chosen_as_by_nova(nova: Nova, many: list[Case]) -> None:
    compare(nova, many)


_aliases = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", " a "])},
        optional={
            "vendor_id": st.sampled_from(["8086", "10DE"]),
            "product_id": st.sampled_from(["154d", "2236"]),
            "device_type": st.sampled_from(["type-PCI", "type-PF", "type-VF"]),
            "numa_policy": st.sampled_from(["required", "preferred"]),
            "live_migratable": st.sampled_from(["yes", "FALSE", "1"]),
            "resource_class": st.sampled_from(["VGPU", "my nic", "CUSTOM_X", "custom_y"]),
            "traits": st.sampled_from(["HW_NIC_SRIOV", "gold", "HW_NIC_SRIOV,Custom_z,two words"]),
        },
    ),
    min_size=1,
    max_size=3,
)


def compare_flavors(
    nova: Nova, aliases: list[dict[str, str]], text: str, policy: Any, in_placement: bool
) -> None:
    try:
        read = aliases_from(
            [msgspec.json.encode(each).decode() for each in aliases], in_placement=in_placement
        )
        found = requested_by(text, read, policy)
    except ValueError:
        with pytest.raises(NovaError):
            nova.ask("pci", "of_flavor", aliases=aliases, text=text, policy=policy, in_placement=in_placement)
        return
    try:
        theirs = nova.ask(
            "pci", "of_flavor", aliases=aliases, text=text, policy=policy, in_placement=in_placement
        )
    except NovaError as error:
        # Of two aliases the first has no device type, and Nova looks for it.
        assert "dev_type" in str(error), error
        return
    assert [[each.count, list(each.specs), each.alias, each.numa_policy] for each in found] == [
        [count, spec, name, its_policy] for count, spec, name, its_policy in theirs["requests"]
    ]
    groups = [group for each in found for group in groups_of(each)] if in_placement else []
    assert [[each.resources, sorted(trait for [trait] in each.required)] for each in groups] == theirs[
        "groups"
    ]


FLAVORS = (
    _aliases,
    st.sampled_from(["a:1", "a:2, b:1", "b:3", "c:1"]),
    st.sampled_from([None, "socket"]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(*FLAVORS)
def test_aliases_are_read_as_by_nova(
    nova: Nova, aliases: list[dict[str, str]], text: str, policy: Any, in_placement: bool
) -> None:
    compare_flavors(nova, aliases, text, policy, in_placement)


@pytest.mark.nightly
@settings(max_examples=1_000, deadline=None, suppress_health_check=SLOW)
@given(*FLAVORS)
def test_thousands_of_aliases_are_read_as_by_nova(
    nova: Nova, aliases: list[dict[str, str]], text: str, policy: Any, in_placement: bool
) -> None:
    compare_flavors(nova, aliases, text, policy, in_placement)


def test_the_differences_are_those_of_the_documentation() -> None:
    page = Path(ROOT / "docs" / "differences.md").read_text()
    table = page.partition("# Differences from Nova's PCI devices")[2].partition("\n# ")[0]
    rows = re.findall(r"(?m)^\| (.+?) \|", table)[1:]
    assert rows[: len(DIFFERENT)] == list(DIFFERENT)
