"""The overview: what needs attention, capacity and use, decisions."""

import asyncio
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from roost.conductor.findings import findings_of_cell, findings_of_refusals, some_of
from roost.dashboard.html.values import amount, percent
from roost.dashboard.kept_views import MOST, KeptViews
from roost.dashboard.views.attention import Attention, of_builds, of_certificate, of_disks, worst_first
from roost.model.inventory import Inventory
from roost.records.summary import FailedBuilds
from roost.server.all_in_one.layout import uniform_layout
from support.certificates import make_authority
from support.dashboards import DashboardClient, opened_dashboard

LAYOUT = uniform_layout(
    6, 2, {"VCPU": Inventory(8, reserved=2, allocation_ratio=2.0), "MEMORY_MB": Inventory(4096)}
)
ADMIN = {"x-auth-token": "admin"}


async def ask_for(client: DashboardClient, vcpus: int, count: int = 1) -> None:
    body = {"flavor": {"vcpus": vcpus, "memory_mb": 512}, "count": count}
    answer = await client.http.post("/v1/instances", json=body, headers=ADMIN)
    assert answer.status_code == 202, answer.text
    await client.system.settle()


def seen(directory: Path, *steps: Any) -> dict[str, Any]:
    """The view after some steps, each of which takes the client."""

    async def run() -> dict[str, Any]:
        async with opened_dashboard(directory, LAYOUT) as client:
            for step in steps:
                await step(client)
            await client.system.records.flush(5)
            client.system.hosts and await client.system.hosts.refresh_all()
            await asyncio.sleep(1.1)  # the view is kept for a second
            view: dict[str, Any] = await client.view("/ui")
            assert (await client.get("/ui")).status_code == 200
            return view

    return asyncio.run(run())


def test_capacity_has_all_denominators_by_class_zone_and_cell(tmp_path: Path) -> None:
    view = seen(tmp_path, lambda client: ask_for(client, 3, 4))
    by_name = {each["resource_class"]: each for each in view["classes"]}
    assert by_name["VCPU"] == {
        "resource_class": "VCPU", "used": 12, "capacity": 72, "reserved": 12, "total": 48, "providers": 6,
    }  # fmt: skip
    assert by_name["MEMORY_MB"]["used"] == 2048
    [zone] = view["zones"]
    assert (zone["name"], zone["hosts"], zone["up"], zone["classes"]["VCPU"]) == ("nova", 6, 6, [12, 72])
    assert [(each["name"], each["hosts"]) for each in view["cells"]] == [("cell1", 3), ("cell2", 3)]
    assert sum(each["classes"]["VCPU"][0] for each in view["cells"]) == 12
    assert (view["hosts"], view["up"], view["disabled"], view["instances"]) == (6, 6, 0, {"active": 4})
    assert view["runs"]["runs"] == 1 and view["runs"]["refused"] == {} and view["attention"] == []


def test_attention_names_what_is_wrong_and_leads_there(tmp_path: Path) -> None:
    async def disable(client: DashboardClient) -> None:
        body = {"enabled": False, "reason": "disk"}
        assert (await client.http.put("/v1/hosts/host-0002", json=body, headers=ADMIN)).status_code == 200
        body = {"enabled": False, "reason": "power"}
        assert (await client.http.put("/v1/cells/cell1", json=body, headers=ADMIN)).status_code == 200

    view = seen(tmp_path, disable, lambda client: ask_for(client, 99))
    found = {(each["level"], each["about"]): each for each in view["attention"]}
    assert found["note", "hosts"]["says"] == "1 host is disabled by an operator: host-0002"
    assert found["note", "hosts"]["href"] == "/ui/hosts?state=disabled"
    assert found["note", "cell cell1"]["says"] == "disabled: power"
    assert found["note", "refusals"]["href"] == "/ui/decisions?refused=true"
    assert view["disabled"] == 4 and sum(view["runs"]["refused"].values()) == 1


def test_findings_are_worst_first() -> None:
    found = [Attention("note", "a", ""), Attention("fails", "b", ""), Attention("look", "c", "")]
    assert [each.about for each in worst_first(found)] == ["b", "c", "a"]


def test_a_cell_that_builds_nothing_fails_and_a_disabled_one_is_a_note() -> None:
    assert [each.level for each in findings_of_cell("a", "down", 3, None, None)] == ["fails"]
    [found] = findings_of_cell("a", "no_host_up", 1200, True, None)
    assert found.says == "none of its 1,200 hosts is up: nothing is built or deleted there"
    assert [each.level for each in findings_of_cell("a", "up", 3, False, "old")] == ["note"]


def test_failed_builds_are_told_and_a_host_that_has_many_by_its_name() -> None:
    few = [FailedBuilds(f"h{number}", "", 1) for number in range(22)]
    assert of_builds([]) == []
    assert [(each.level, each.says) for each in of_builds(few)] == [
        ("note", "22 failed in 24 h, on 22 hosts")
    ]
    [many] = of_builds([*few, FailedBuilds("bad", "", 9)])
    assert (many.level, many.says) == ("look", "31 failed in 24 h, on 23 hosts, 9 of them on bad")


def test_many_refusals_are_the_clouds_and_few_the_users() -> None:
    few = list(findings_of_refusals(Counter({"x": 2}), 100, 10, more=False))
    many = list(findings_of_refusals(Counter({"x": 60}), 100, 10, more=False))
    assert [each.level for each in few] == ["note"] and [each.level for each in many] == ["look"]
    assert "newest 100" in [*findings_of_refusals(Counter({"x": 2}), 100, 10, more=True)][-1].says
    assert some_of([f"h{n}" for n in range(7)], "host", "hosts") == "7 hosts: h0, h1, h2, h3, h4, ..."


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("VCPU", 1234567, "1,234,567"),
        ("MEMORY_MB", 512, "512 MiB"),
        ("MEMORY_MB", 1536, "1.5 GiB"),
        ("MEMORY_MB", 1024**2, "1 TiB"),
        ("DISK_GB", 2048, "2 TiB"),
        ("DISK_GB", 0, "0 B"),
        ("CUSTOM_MEMORY", 7, "7"),
    ],
)
def test_amounts_have_the_unit_that_fits(name: str, value: int, text: str) -> None:
    assert amount(name, value) == text


def test_share_without_capacity_is_a_dash() -> None:
    assert percent(1, 0) == "–" and percent(1, 3) == "33 %"


def test_kept_views_are_made_once_for_all_and_again_after_an_error() -> None:
    async def run() -> None:
        now, made = [0.0], []
        views = KeptViews(lambda: now[0])

        async def make() -> int:
            made.append(1)
            await asyncio.sleep(0)
            if len(made) == 2:
                raise ValueError("away")
            return len(made)

        assert await asyncio.gather(*(views.get("a", 1.0, make) for _ in range(50))) == [1] * 50
        now[0] = 1.0
        with pytest.raises(ValueError, match="away"):
            await views.get("a", 1.0, make)
        assert await views.get("a", 1.0, make) == 3
        for number in range(2 * MOST):
            await views.get(number, 1.0, make)
        assert len(views._made) == MOST

    asyncio.run(run())


def test_a_certificate_that_ends_soon_is_told(tmp_path: Path) -> None:
    file = make_authority(tmp_path, "authority").certificate
    ends = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc.timestamp()
    assert of_certificate(None, ends) == of_certificate(file, ends - 30 * 86_400) == []
    [soon] = of_certificate(file, ends - 86_400)
    [over] = of_certificate(file, ends + 1)
    assert (soon.level, over.level) == ("look", "fails") and "ends on" in soon.says
    file.write_text("none")
    assert "cannot be read" in of_certificate(file, ends)[0].says


def test_a_full_disk_is_told_once_for_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type(usage)(100 * 2**20, 95 * 2**20, 5 * 2**20))
    [found] = of_disks([tmp_path / "a.db", tmp_path / "b.db"])
    assert found.says == "the disk is 95 % full, 5 MiB are free" and found.level == "look"
    monkeypatch.undo()
    [missing] = of_disks([tmp_path / "none" / "a.db"])
    assert "No such file" in missing.says


def test_content_is_made_once_for_all_viewers_and_has_the_nonce_of_each_response(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_dashboard(tmp_path, LAYOUT) as client:
            pages = await asyncio.gather(*(client.get("/ui") for _ in range(4)))
            found = set()
            for page in pages:
                [nonce] = re.findall(r"'nonce-([^']+)'", page.headers["content-security-policy"])
                assert f'hx-nonce="{nonce}"' in page.text and "nonce-of-the-response" not in page.text
                found.add(nonce)
            assert len(found) == 4
            part = await client.get("/ui", **{"hx-request": "true"})
            assert '<div class="region" id="overview"' in part.text and "<html" not in part.text

    asyncio.run(run())
