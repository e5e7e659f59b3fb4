"""The map: its bytes, its layout and its groups, counted against plain loops over the same cloud."""

import asyncio
import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roost.dashboard.fleet.kept_levels import MapBytes
from roost.dashboard.fleet.levels import DISABLED, DOWN, FILTERED, NONE, MapScale
from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.fleet.host_levels import LEVELS
from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.scheduler.nodes.host_states import STATES
from roost.scheduler.nodes.table import NodeTable
from support.clouds import GPU, Cloud, Provider, flat, report, uuid_of
from support.fleet_pages import FleetPages, fleet_pages
from support.mixed_clouds import HOSTS, mixed_cloud


def seen(folder: Path, cloud: Cloud, *paths: str, **more: Any) -> list[Any]:
    """The views at some addresses."""

    async def run() -> list[Any]:
        async with fleet_pages(folder, cloud, **more) as pages:
            return [await pages.view(path) for path in paths]

    return asyncio.run(run())


async def bytes_of(pages: FleetPages, query: str = "") -> list[int]:
    answer = await pages.get(f"/ui/map/levels?{query}")
    assert answer.status_code == 200, answer.text
    return list(answer.content)


async def names_of(pages: FleetPages) -> list[str]:
    now = await pages.now()
    return [now.table.hosts[index] for index in now.layout.nodes.tolist()]


def test_a_map_has_one_byte_a_host_in_the_order_of_its_layout(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            layout = (await pages.get("/ui/map/layout")).json()
            assert layout["count"] == HOSTS == sum(each["count"] for each in layout["groups"])
            assert all(each.keys() == {"zone", "rack", "cell", "count"} for each in layout["groups"])
            found = await bytes_of(pages, "by=used&class=VCPU")
            now = await pages.now()
            uses = now.amounts("VCPU")
            for position, byte in enumerate(found):
                state = STATES[now.states.item(position)]
                if state != "up":
                    assert byte == {"down": DOWN, "disabled": DISABLED}[state]
                elif not uses.capacity[position]:
                    assert byte == NONE
                else:
                    share = uses.used[position] / uses.capacity[position]
                    assert (byte == 0) == (share == 0) and (byte == LEVELS - 1) == (share >= 1)
                    assert 0 <= byte < LEVELS
            assert {DOWN, DISABLED, 0, LEVELS - 1} <= set(found)

    asyncio.run(main())


def test_hosts_are_looked_up_once_for_all_amounts_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []
    look_up = NodeTable.indexes_of_rows

    def counted(table: NodeTable, fleet: Fleet, rows: Rows) -> Rows:
        looked_up.append(len(rows))
        return look_up(table, fleet, rows)

    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            now = await pages.now()
            monkeypatch.setattr(NodeTable, "indexes_of_rows", counted)
            assert now.amounts("VCPU").capacity.sum() > 0
            assert len(looked_up) == 1

    asyncio.run(main())


def test_levels_take_no_more_bytes_than_their_bits_and_alike_ones_hardly_any() -> None:
    random = np.random.default_rng(1).integers(0, LEVELS, 100_000).astype(np.uint8)
    scale = MapScale("VCPU used", ("0 %", "100 %"), "without VCPU")
    for levels, most in ((random, 5 * 100_000 / 8 * 1.01), (np.sort(random), 1_000)):
        found = MapBytes("layout", 1.0, levels, scale).compressed
        assert len(found) <= most
        assert gzip.decompress(found) == levels.tobytes()


def test_the_head_tells_commit_scale_and_topic_and_an_old_layout_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            layout = (await pages.get("/ui/map/layout")).json()["layout"]
            answer = await pages.get(f"/ui/map/levels?by=free&class=VCPU&zone=az0&layout={layout}")
            now = await pages.now()
            assert answer.headers["x-roost-commit"] == str(now.version)
            assert answer.headers["x-roost-topic"] == "levels?by=free&class=VCPU&zone=az0"
            scale = answer.headers["x-roost-scale"]
            assert scale == '{"title":"VCPU free","ends":["0","16","32"],"none":"without VCPU"}'
            tag = answer.headers["etag"]
            assert tag == f'"{layout}-{now.version}"'
            again = await pages.get(
                f"/ui/map/levels?by=free&class=VCPU&zone=az0&layout={layout}", **{"if-none-match": tag}
            )
            assert again.status_code == 304 and not again.content
            for path in ("levels?layout=old", "host?layout=old&index=0", "find?layout=old&search=h"):
                answer = await pages.get(f"/ui/map/{path}", accept="application/json")
                assert answer.status_code == 409
                [error] = answer.json()["errors"]
                assert error["code"] == "dashboard.layout_is_old" and layout in error["detail"]

    asyncio.run(main())


def test_bytes_are_compressed_once_and_are_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            now = await pages.now()
            kept = pages.service.levels.of(now, (await _selection(pages)))
            assert gzip.decompress(kept.compressed) == kept.levels.tobytes()
            assert kept.compressed is kept.compressed

    asyncio.run(main())


async def _selection(pages: FleetPages) -> Any:
    from roost.dashboard.fleet.selection import selection_of

    found = selection_of("levels?by=used&class=VCPU")
    assert found is not None and found.topic == "levels?by=used&class=VCPU"
    return found


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("zone=az1", lambda group, _: group.zone == "az1"),
        ("rack=-", lambda group, _: not group.label),
        ("rack=r1", lambda group, _: group.label == "r1"),
        ("cell=cell2", lambda group, _: group.cell == "cell2"),
        ("aggregate=rack1", lambda group, _: "r1" in group.label.split(", ")),
        ("zone=nowhere", lambda *_: False),
    ],
)
def test_a_filter_greys_out_all_other_hosts(tmp_path: Path, query: str, keeps: Any) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            found = await bytes_of(pages, f"class=VCPU&{query}")
            every = await bytes_of(pages, "class=VCPU")
            now = await pages.now()
            wanted = [keeps(now.group_at(place), place) for place in range(len(now))]
            assert found == [byte if kept else FILTERED for byte, kept in zip(every, wanted, strict=True)]
            view = await pages.view(f"/ui/map?class=VCPU&{query}")
            assert (view["hosts"], view["all_hosts"]) == (sum(wanted), HOSTS)

    asyncio.run(main())


def test_a_trait_of_a_device_chooses_its_host(tmp_path: Path) -> None:
    cloud = flat(3)
    cloud.providers.append(
        Provider(uuid_of(50), {GPU: Inventory(1)}, parent=uuid_of(1), traits=frozenset({"CUSTOM_RED"}))
    )

    async def main() -> None:
        async with fleet_pages(tmp_path, cloud) as pages:
            assert await bytes_of(pages, "class=VCPU&trait=CUSTOM_RED") == [FILTERED, 0, FILTERED]
            assert await bytes_of(pages, f"class={GPU}") == [NONE, 0, NONE]

    asyncio.run(main())


def test_fragmented_is_what_one_instance_cannot_take(tmp_path: Path) -> None:
    def host(number: int, vcpus: int, memory: int, *gpus: int) -> list[Provider]:
        root = Provider(
            uuid_of(number),
            {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192)},
            used={name: used for name, used in (("VCPU", vcpus), ("MEMORY_MB", memory)) if used},
        )
        return [
            root,
            *(
                Provider(
                    uuid_of(100 * number + each),
                    {GPU: Inventory(4)},
                    root.uuid,
                    used={GPU: used} if used else {},
                )
                for each, used in enumerate(gpus, 1)
            ),
        ]

    hosts = [
        host(1, 0, 0),  # nothing is used: nothing is left over
        host(2, 0, 8192),  # no memory: all free processors are left over
        host(3, 4, 4096),  # both half used
        host(4, 0, 0, 2, 2, 4),  # devices free in two pieces of two
        host(5, 8, 0, 0),  # no processors: the device cannot be used
    ]
    cloud = Cloud(
        [each for some in hosts for each in some], [report(f"host{n}", uuid_of(n)) for n in range(1, 6)]
    )

    async def main() -> None:
        async with fleet_pages(tmp_path, cloud) as pages:
            assert await bytes_of(pages, "by=fragmentation&class=VCPU") == [0, LEVELS - 1, 0, 0, 0]
            gpus = await bytes_of(pages, f"by=fragmentation&class={GPU}")
            assert gpus[:3] == [NONE] * 3 and 0 < gpus[3] < 10 and gpus[4] == LEVELS - 1
            assert await bytes_of(pages, "by=state") == [0] * 5

    asyncio.run(main())


def test_groups_add_up_and_the_fullest_rack_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            now = await pages.now()
            uses = now.amounts("MEMORY_MB")
            for by in ("place", "zone", "rack", "cell"):
                view = await pages.view(f"/ui/map?class=MEMORY_MB&group={by}")
                sums: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
                for place in range(len(now)):
                    group = now.group_at(place)
                    key = (
                        group.zone if by != "cell" else None,
                        group.label if by in ("place", "rack") else None,
                        group.cell if by in ("place", "cell") else None,
                    )
                    for at, value in enumerate(
                        (1, uses.used[place], uses.capacity[place], now.states[place] == 2)
                    ):
                        sums[key][at] += int(value)
                found = {
                    (each["zone"], each["rack"], each["cell"]): [
                        each["hosts"], each["used"], each["capacity"], each["down"]
                    ]
                    for each in view["groups"]
                }  # fmt: skip
                assert found == dict(sums) and view["all_groups"] == len(sums)
                shares = [each["used"] / max(each["capacity"], 1) for each in view["groups"]]
                assert shares == sorted(shares, reverse=True)
                assert view["fullest"] == view["groups"][0]
                for each in view["groups"]:
                    assert each["fullest_share"] is None or each["fullest"].lower().startswith("host")
            totals = view["totals"]
            assert (totals["used"], totals["capacity"]) == (int(uses.used.sum()), int(uses.capacity.sum()))
            assert (totals["total"], totals["reserved"]) == (int(uses.total.sum()), int(uses.reserved.sum()))
            page = await pages.page("/ui/map?class=MEMORY_MB&group=rack")
            assert "Fullest of" in page and "MEMORY_MB" in page

    asyncio.run(main())


def test_the_fullest_host_of_a_group_is_the_one_with_the_largest_share(tmp_path: Path) -> None:
    cloud = flat(4)
    for number, used in enumerate([1, 6, 6, 0]):
        cloud.providers[number].used = {"VCPU": used} if used else {}
    [view] = seen(tmp_path, cloud, "/ui/map?class=VCPU")
    [group] = view["groups"]
    assert (group["fullest"], group["fullest_share"], group["used"], group["capacity"]) == (
        "host1", 0.75, 13, 32,
    )  # fmt: skip


def test_a_host_on_the_map_has_its_name_and_facts_and_is_found_by_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud()) as pages:
            names = await names_of(pages)
            layout = (await pages.now()).layout.version
            for place, name in enumerate(names):
                found = (await pages.get(f"/ui/map/host?layout={layout}&index={place}")).json()
                assert found["name"] == name and found["href"].startswith("/ui/hosts/")
                assert dict(found["facts"])["State"] in STATES
            assert (await pages.get(f"/ui/map/host?layout={layout}&index={HOSTS}")).status_code == 404
            found = (await pages.get(f"/ui/map/find?layout={layout}&search=HOST0")).json()
            wanted = [place for place, name in enumerate(names) if "host0" in name.lower()]
            assert [place for place, _ in found["hosts"]] == wanted and found["more"] == 0
            found = (await pages.get(f"/ui/map/find?layout={layout}&search=host3")).json()
            assert all(names[place] == name for place, name in found["hosts"])
            [[place, name], *_] = (await pages.get(f"/ui/map/find?layout={layout}&search=n7")).json()["hosts"]
            now = await pages.now()
            assert now.table.nodenames[now.layout.nodes[place]] == "n7"

    asyncio.run(main())


def test_without_a_ledger_a_map_has_states_alone_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, mixed_cloud(), over_http=True) as pages:
            view = await pages.view("/ui/map")
            assert view["totals"] is None and view["version"] is None and view["all_hosts"] == HOSTS
            assert "use is not known" in await pages.page("/ui/map")
            assert set(await bytes_of(pages, "by=state")) == {0, DOWN, DISABLED}
            assert set(await bytes_of(pages, "by=used&class=VCPU")) == {NONE, DOWN, DISABLED}

    asyncio.run(main())


def test_maps_of_no_host_of_one_and_of_a_rack_of_many(tmp_path: Path) -> None:
    [view] = seen(tmp_path, Cloud([], []), "/ui/map")
    assert view["all_hosts"] == 0 and view["groups"] == [] and view["fullest"] is None
    (tmp_path / "one").mkdir()
    [view] = seen(tmp_path / "one", flat(1), "/ui/map")
    assert view["all_hosts"] == 1 and len(view["groups"]) == 1
    (tmp_path / "many").mkdir()
    rack = HostAggregate("rack", "rack", {"rack": "r1"})
    [view] = seen(tmp_path / "many", flat(300, aggregates=(rack,)), "/ui/map")
    assert [(each["rack"], each["hosts"]) for each in view["groups"]] == [("r1", 300)]


def test_groups_are_paged(tmp_path: Path) -> None:
    cloud = flat(0)
    for number in range(120):
        rack = HostAggregate(f"rack{number}", f"rack{number}", {"rack": f"r{number:03}"})
        cloud.providers.append(Provider(uuid_of(number), {"VCPU": Inventory(8)}))
        cloud.reports.append(report(f"host{number}", uuid_of(number), aggregates=(rack,)))
    first, last, beyond = seen(
        tmp_path, cloud, "/ui/map?sort=name", "/ui/map?sort=name&page=3", "/ui/map?sort=name&page=99"
    )
    assert (len(first["groups"]), len(last["groups"]), first["all_groups"]) == (50, 20, 120)
    assert last["groups"][-1]["rack"] == "r119" and beyond["page"] == 3
