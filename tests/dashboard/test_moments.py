"""Pages as of a moment: how moments are named, which are kept, and the bar that says what is shown."""

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roost.dashboard.past.past_moments import (
    MOST_SKEWED,
    PastMissing,
    kept_commits,
    moment_of,
    number_or_time,
    version_at,
)
from roost.ledger import SCHEMA
from roost.ledger.tables import commits
from roost.model.inventory import Inventory
from roost.server.all_in_one.layout import uniform_layout
from roost.storage import Database
from roost.web.errors import BadRequest
from support.dashboards import DashboardClient, opened_dashboard
from support.upgrading import upgrade_empty

LAYOUT = uniform_layout(4, 2, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096)})
ADMIN = {"x-auth-token": "admin"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("17", 17),
        ("1790000000", 1_790_000_000),
        ("1790000000.5", 1_790_000_000.5),
        ("2026-09-21T14:13:20", 1_790_000_000.0),
        ("2026-09-21 14:13:20Z", 1_790_000_000.0),
        ("2026-09-21T16:13:20+02:00", 1_790_000_000.0),
        ("2026-09-21", 1_789_948_800.0),
    ],
)
def test_a_moment_is_a_commit_or_a_time(text: str, meant: float) -> None:
    assert number_or_time(text) == meant


@pytest.mark.parametrize(
    "text", ["", "Tuesday", "-5", "1e9", "nan", "inf", "2026-13-01", "٣", "9" * 19, "1.2.3"]
)
def test_other_texts_are_refused_by_name(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        number_or_time(text)
    assert repr(text) in str(refused.value)


def database_with(folder: Path, first: int, stamps: list[float]) -> Database:
    """A database with commits from a number on, made at these times."""
    database = Database(f"sqlite:///{folder / 'roost.db'}")
    upgrade_empty(SCHEMA, database)
    rows = [
        {"seq": seq, "writer": f"w{seq}", "committed_at": at, "changes": "[]"}
        for seq, at in enumerate(stamps, first)
    ]
    database.write_now(lambda connection: connection.execute(sa.insert(commits), rows))
    return database


def test_the_commit_of_a_time_is_the_largest_one_that_is_not_later(tmp_path: Path) -> None:
    """Also where the clocks of writers differ, by up to half the commits that are looked through."""
    chosen = random.Random(3)
    skews = [0.0, -90.0, 130.0]
    stamps = [1e9 + number + chosen.choice(skews) for number in range(2_000)]
    database = database_with(tmp_path, 50, stamps)
    for _ in range(300):
        at = chosen.uniform(1e9 - 200, 1e9 + 2_300)
        expected = max((seq for seq, stamp in enumerate(stamps, 50) if stamp <= at), default=None)
        found = database.read_now(lambda connection: version_at(connection, at, 50, 2_049))  # noqa: B023
        assert found == expected, at
    asyncio.run(database.close())


def test_a_writer_whose_clock_is_far_off_does_not_answer_for_all_times(tmp_path: Path) -> None:
    stamps = [1e9 + number for number in range(3 * MOST_SKEWED)]
    stamps[-3] = 1e9
    database = database_with(tmp_path, 1, stamps)
    found = database.read_now(lambda connection: version_at(connection, 1e9 + 200, 1, len(stamps)))
    assert found == 201
    asyncio.run(database.close())


def test_moments_that_are_not_kept_are_told_with_what_is(tmp_path: Path) -> None:
    database = database_with(tmp_path, 50, [1_790_000_000.0 + number for number in range(10)])

    def asked(text: str) -> Any:
        return database.read_now(lambda connection: moment_of(connection, text))

    kept = r"commits 50 to 59 are, from 2026-09-21 14:13:20 UTC to 2026-09-21 14:13:29 UTC"
    assert asked("49").version == 49
    assert asked("1790000003").version == 53
    assert asked("1790000003.5") == (53, 1_790_000_003.5, 1_790_000_003.0)
    for text in ("48", "2026-09-21T14:13:19", "1500000000"):
        with pytest.raises(PastMissing, match=kept):
            asked(text)
    with pytest.raises(BadRequest, match="there is no commit 60 yet, the newest is 59"):
        asked("60")
    assert database.read_now(kept_commits).newest == 59
    asyncio.run(database.close())


async def _ask_for(client: DashboardClient, count: int) -> int:
    """Ask for instances, and return the version with them."""
    body = {"flavor": {"vcpus": 1, "memory_mb": 512}, "count": count}
    answer = await client.http.post("/v1/instances", json=body, headers=ADMIN)
    assert answer.status_code == 202, answer.text
    await client.system.settle()
    assert client.system.ledger is not None
    return (await client.system.ledger.current()).version


def test_pages_as_of_a_moment(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_dashboard(tmp_path, LAYOUT) as client:
            one = await _ask_for(client, 1)
            four = await _ask_for(client, 3)
            for version, used in ((one, 1), (four, 4)):
                while (await client.get(f"/ui?at={version}")).status_code == 404:
                    await asyncio.sleep(0.01)  # the index is being made
                view = await client.view(f"/ui?at={version}")
                by_name = {each["resource_class"]: each for each in view["classes"]}
                assert by_name["VCPU"] == {
                    "resource_class": "VCPU", "used": used, "capacity": 32, "reserved": 0, "total": 32,
                    "providers": 4,
                }  # fmt: skip
                assert (view["hosts"], view["version"], view["past"]) == (4, version, True)
                assert sum(each["classes"].get("VCPU", [0])[0] for each in view["cells"]) == used
                assert [each["hosts"] for each in view["cells"]] == [2, 2]
                await _check_other_pages(client, version, used)
            page = (await client.get(f"/ui?at={one}")).text
            assert "time-bar past" in page and "Back to now" in page and f"at={one + 1}" in page
            assert "data-live-topic" not in page
            assert "time-bar" in (await client.get("/ui")).text
            before = await client.get("/ui/map?at=2001-01-01")
            assert before.status_code == 404 and "time-bar past" in before.text
            assert "is not kept: the commits 1 to" in before.text and "Back to now" in before.text
            assert (await client.get("/ui?at=2001-01-01&format=json")).status_code == 404
            for text in ("Tuesday", f"{four + 10_000}"):
                refused = await client.get(f"/ui?at={text}")
                assert refused.status_code == 400 and text in refused.text

    asyncio.run(run())


def _to_the_present(page: str) -> list[str]:
    """Links of a page of the past to pages that have a past, and do not lead there."""
    _, _, navigation = page.partition('<ul class="nav-links">')
    links = re.findall(r'<a [^>]*href="(/ui(?:/(?:map|hosts)\b[^"]*)?(?:\?[^"]*)?)"[^>]*>([^<]*)', navigation)
    return [address for address, words in links if "at=" not in address and words != "Back to now"]


async def _check_other_pages(client: DashboardClient, version: int, used: int) -> None:
    shown = await client.view(f"/ui/map?at={version}&class=VCPU")
    assert (shown["totals"]["used"], shown["totals"]["capacity"], shown["version"]) == (used, 32, version)
    assert shown["states"] == {}
    levels = await client.get(f"/ui/map/levels?at={version}&class=VCPU")
    assert sum(level > 0 for level in levels.content) == sum(
        each["amounts"]["VCPU"]["used"] > 0
        for each in (await client.view(f"/ui/hosts?at={version}"))["hosts"]
    )
    assert "x-roost-topic" not in levels.headers
    hosts = (await client.view(f"/ui/hosts?at={version}"))["hosts"]
    assert sum(each["amounts"]["VCPU"]["used"] for each in hosts) == used
    held = []
    for number, host in enumerate(hosts):
        view = await client.view(f"/ui/hosts/{host['node']}?at={version}")
        [provider] = view["tree"]["providers"]
        by_class = {each["resource_class"]: each["used"] for each in provider["inventories"]}
        assert by_class["VCPU"] == host["amounts"]["VCPU"]["used"]
        held += view["holders"]["holders"]
        about = await client.get(f"/ui/map/host?layout={shown['layout']}&index={number}&at={version}")
        assert about.status_code == 200
        page = await client.get(f"/ui/hosts/{host['node']}?at={version}")
        assert _to_the_present(page.text) == []
        assert page.status_code == 200 and "are not kept" in page.text
    assert len(held) == used
    for each in held:
        claim = (await client.view(f"/ui/instances/{each['consumer']}?at={version}"))["claim"]
        assert [part["amounts"]["VCPU"] for part in claim] == [1]
    for address in ("/ui/map", "/ui/hosts", f"/ui/instances/{held[0]['consumer']}"):
        page = await client.get(f"{address}?at={version}")
        assert page.status_code == 200 and "time-bar past" in page.text, address
        # Nobody gets to the present without knowing, and nothing is done in the past.
        assert "/ui/actions/" not in page.text, address
        # The hosts of an instance are those of its whole history.
        assert address.startswith("/ui/instances") or _to_the_present(page.text) == [], address
    gone = await client.get(f"/ui/hosts/{hosts[0]['node']}?at=1")
    assert gone.status_code == 404 and "there was no host" in gone.text
