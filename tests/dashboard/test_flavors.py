"""The flavors in use, and how many of each fit: counted one after another, and again when it is due."""

import asyncio
from pathlib import Path

import pytest

from roost.dashboard.flavor_counts import FRESH_SECONDS, FlavorCount, FlavorCounts
from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.flavors import FLAVORS_PAGE
from roost.dashboard.views.decision import WorkingCause
from roost.dashboard.views.flavors import FlavorRow, FlavorsView
from roost.model.reasons import RefusalCause
from roost.model.spec import Flavor
from roost.model.what_if import WhatIf, ZoneShare
from support.dashboard_users import dashboard_users
from support.hostile import HOSTILE, check_shown_as_text
from support.pages import html_of

VIEWING = Viewing("olga", True, "guard", "/ui/flavors", nonce="nonce")
SMALL = Flavor("small", 1, 512)


def test_the_flavors_of_requests_and_instances_are_counted_one_after_another(tmp_path: Path) -> None:
    async def check() -> None:
        async with dashboard_users(tmp_path) as client:
            assert (await client.view("/ui/flavors?count=true"))["flavors"] == []
            await client.ask_for("mia", 2)
            await client.ask_for("mia", flavor={"vcpus": 3, "memory_mb": 0, "name": "large"})
            view = await client.view("/ui/flavors")
            used = [(each["flavor"]["name"], each["runs"], each["instances"]) for each in view["flavors"]]
            assert used == [("small", 1, 2), ("large", 1, 1)]
            assert [each["fit"] for each in view["flavors"]] == [None, None]
            first = await client.view("/ui/flavors?count=true")
            assert [each["fit"] is None for each in first["flavors"]] == [False, True]
            second = await client.view("/ui/flavors?count=true")
            small, large = (each["fit"]["answer"] for each in second["flavors"])
            # Three instances hold 5 of the VCPUs of five hosts.
            asked = await client.view("/ui/what-if?vcpus=1&memory_mb=0")
            assert small["fits"] == asked["answer"]["fits"] > large["fits"] > 0
            assert not any(each["due"] for each in second["flavors"])
            page = (await client.get("/ui/flavors")).text
            assert "hx-trigger" not in page and f"<strong>{large['fits']}</strong>" in page

            await client.ask_for("mia")
            later = await client.view("/ui/flavors")
            assert not any(each["due"] for each in later["flavors"])  # counted a moment ago
            assert [each["fit"] for each in later["flavors"]] == [each["fit"] for each in second["flavors"]]
            found = await client.view("/ui/flavors?search=LAR")
            assert [each["flavor"]["name"] for each in found["flavors"]] == ["large"]
            assert (await client.get("/ui/flavors", "mia")).status_code == 403

    asyncio.run(check())


def test_a_count_is_due_when_the_fleet_has_changed_and_some_time_has_passed() -> None:
    async def check() -> None:
        fits = FlavorCounts()
        assert fits.is_due(SMALL, 0.0, (1, 1))
        answer = WhatIf(fits=3, on_hosts=1, hosts=1, version=1, node_version=1)
        made = 0

        async def make() -> FlavorCount:
            nonlocal made
            made += 1
            await asyncio.sleep(0)
            return FlavorCount(at=10.0, answer=answer)

        def is_due() -> bool:
            return fits.is_due(SMALL, 10.0, (1, 1))

        await asyncio.gather(*(fits.count(SMALL, is_due, make) for _ in range(3)))
        assert made == 1 and fits.of(Flavor("small", 1, 512, extra_specs={})) is not None
        assert not fits.is_due(SMALL, 1e6, (1, 1))
        assert not fits.is_due(SMALL, 10.0 + FRESH_SECONDS / 2, (2, 1))
        assert fits.is_due(SMALL, 10.0 + FRESH_SECONDS, (2, 1))
        assert fits.is_due(Flavor("small", 2, 512), 10.0, (1, 1))

    asyncio.run(check())


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_shown_as_text(kind: str) -> None:
    name = HOSTILE[kind]
    answer = WhatIf(fits=1, on_hosts=1, hosts=2, zones=(ZoneShare(name, 1, 1),))
    cause = RefusalCause(kind="query", name=name, text=name, without=(name,))
    rows = [
        FlavorRow(
            flavor=Flavor(name, 1, 512, 0, {name: name}),
            runs=1,
            instances=1,
            fit=fit,
            due=True,
            causes=(WorkingCause(cause, None),),
            address="/ui/what-if",
        )
        for fit in (None, FlavorCount(at=0.0, answer=answer), FlavorCount(at=0.0, failure=name))
    ]
    page = html_of(FLAVORS_PAGE, FlavorsView(at=1.0, search="", flavors=tuple(rows)), VIEWING)
    check_shown_as_text(page, name)
