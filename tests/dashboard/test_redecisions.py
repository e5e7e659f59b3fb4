"""Decisions made again without one condition, on a running system and its past."""

import asyncio
from pathlib import Path

import pytest

from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.redecision import REDECISION_PAGE
from roost.dashboard.views.decision import decision_of
from roost.dashboard.views.redecision import RedecisionView
from roost.model.inventory import Inventory
from roost.model.reasons import HostNames
from roost.scheduler.replay.counterfactuals import ChosenHost, Counterfactual, Redecided
from roost.server.all_in_one.layout import uniform_layout
from support.clouds import flat
from support.dashboards import DashboardClient, opened_dashboard
from support.decided_runs import decided_run
from support.hostile import HOSTILE, check_shown_as_text
from support.pages import html_of

VIEWING = Viewing("olga", True, "guard", "/ui/decisions/x/without", nonce="nonce")
LAYOUT = uniform_layout(4, 1, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192)})


async def decided(client: DashboardClient, **more: object) -> str:
    """Have a request decided; returns the id of its run."""
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 512}, **more}
    answer = await client.http.post("/v1/instances", json=body, headers={"x-auth-token": "admin"})
    assert answer.status_code == 202, answer.text
    await client.system.settle()
    found = await client.view(f"/ui/decisions?request_id={answer.json()['request_id']}")
    return str(found["decisions"][0]["run"])


def test_a_decision_of_a_running_system_is_made_again(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened_dashboard(tmp_path, LAYOUT) as client:
            placed = await decided(client)
            [host] = (await client.view(f"/ui/decisions/{placed}"))["instances"][0]["attempts"]
            without = await decided(client, ignore_hosts=[host["host"]])
            refused = await decided(client, flavor={"name": "large", "vcpus": 9, "memory_mb": 512})
            await decided(client)  # the ledger goes on

            view = await client.view(f"/ui/decisions/{without}/without")
            made = view["made"]
            assert made["same"] and made["complete"] and made["left"] == 3
            places = {each["text"]: each for each in made["counterfactuals"]}
            came = places["ignore_hosts"]
            assert (came["removed"], came["left"], came["number_came"]) == (1, 4, 1)
            assert came["came"]["names"] == [host["host"]]
            made = (await client.view(f"/ui/decisions/{refused}/without"))["made"]
            places = {each["text"]: each for each in made["counterfactuals"]}
            assert len(places["9 VCPU"]["hosts"]) == 1 and places["9 VCPU"]["number_came"] == 4
            page = (await client.get(f"/ui/decisions/{refused}/without")).text
            assert "decided again" in page and "9 VCPU" in page
            page = (await client.get(f"/ui/decisions/{refused}")).text
            assert f'hx-get="/ui/decisions/{refused}/without"' in page

            answer = await client.get(f"/ui/decisions/{'0' * 8}-0000-4000-8000-{'0' * 12}/without")
            assert answer.status_code == 404

    asyncio.run(check())


def test_a_past_that_is_not_kept_is_said(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened_dashboard(tmp_path, LAYOUT) as client:
            placed = await decided(client)
            for _ in range(3):
                await decided(client)
            ledger = client.system.ledger
            await ledger.trim(1, 0.0)
            view = await client.view(f"/ui/decisions/{placed}/without")
            assert view["made"] is None and "is not kept" in view["impossible"]
            assert "cannot be decided again" in (await client.get(f"/ui/decisions/{placed}/without")).text

    asyncio.run(check())


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_shown_as_text(tmp_path: Path, kind: str) -> None:
    name = HOSTILE[kind]
    record, table = decided_run(tmp_path, flat(1))
    other = Counterfactual(
        kind="filter",
        text=name,
        without=(name,),
        hosts=(ChosenHost(name, "node", 1.0),),
        left=2,
        came=HostNames((name,)),
        number_came=1,
        same=False,
    )
    made = Redecided(same=False, differences=(name,), notes=(name,), counterfactuals=(other,))
    decision = decision_of(record, table, of_project=False)
    for view in (
        RedecisionView(decision=decision, made=made),
        RedecisionView(decision=decision, impossible=name),
    ):
        check_shown_as_text(html_of(REDECISION_PAGE, view, VIEWING), name)
