"""Decisions: the list of them, and the story of one; what their project sees of them."""

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from roost.dashboard.html.funnel import funnel
from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.decision import DECISION_PAGE
from roost.dashboard.views.decision import decision_of
from roost.dashboard.views.funnel import CHOSEN, FunnelStep, funnel_of
from roost.model.spec import Flavor, RequestSpec
from roost.model.visibility import seen
from roost.scheduler import HostRequest, NoValidHost
from support.clouds import flat
from support.dashboard_users import DashboardUsers, dashboard_users
from support.decided_runs import decided_run
from support.hostile import HOSTILE, check_shown_as_text
from support.pages import html_of

VIEWING = Viewing("olga", True, "guard", "/ui/decisions/x", nonce="nonce")


def test_the_funnel_goes_from_all_hosts_to_the_chosen_one(tmp_path: Path) -> None:
    cloud = flat(6)
    cloud.reports[0] = msgspec.structs.replace(cloud.reports[0], enabled=False)
    record, table = decided_run(tmp_path, cloud, 4, alternates=2)
    view = decision_of(record, table, of_project=False)
    assert [
        (each.name, each.left, each.removed) for each in view.funnel if each.removed or not each.kind
    ] == [
        ("hosts known", 6, 0),
        ("ComputeFilter", 5, 1),
        (CHOSEN, 1, 4),
    ]
    assert view.outcome == "building" and view.refusal is None
    assert [each.chosen for each in view.shares] == [True, False, False]
    [placed] = view.instances
    assert placed.attempts[0].host == view.shares[0].host.name
    assert [each.name for each in placed.alternates] == [each.host.name for each in view.shares[1:]]


@pytest.mark.parametrize(
    ("removed", "alone", "sole", "words"),
    [
        (344, 600, 344, "600 do not meet it, 344 only for this"),
        (344, 600, 600, "600 do not meet it, all of them only for this"),
        (12, 12, 12, "all of them only for this"),
        (12, None, 5, "5 only for this"),
    ],
)
def test_a_step_says_for_how_many_hosts_it_is_the_only_one(
    removed: int, alone: int | None, sole: int, words: str
) -> None:
    known = FunnelStep(name="known", left=600)
    step = FunnelStep(name="x", kind="filter", left=0, removed=removed, alone=alone, sole=sole)
    assert f">{words}</small>" in str(funnel((known, step)))


def test_the_shares_of_weighers_add_up_to_the_weight(tmp_path: Path) -> None:
    cloud = flat(5)
    for number, each in enumerate(cloud.providers):
        each.used = {"VCPU": number + 1, "MEMORY_MB": 512 * (5 - number)}
    cloud.reports[2] = msgspec.structs.replace(cloud.reports[2], failed_builds=3)
    record, table = decided_run(tmp_path, cloud, alternates=4)
    for each in decision_of(record, table, of_project=False).shares:
        assert each.shares
        assert sum(share.share for share in each.shares) == pytest.approx(each.weight)


def test_a_refusal_has_the_stages_that_removed_hosts_and_the_change_that_works(tmp_path: Path) -> None:
    record, table = decided_run(tmp_path, flat(3), 12, refused=True)
    view = decision_of(record, table, of_project=False)
    assert view.outcome == "refused" and view.refusal is not None
    assert (view.funnel[0], view.funnel[-1]) == (
        FunnelStep(name="hosts known", left=3),
        FunnelStep(
            name="12 VCPU", text="have 12 VCPU free", kind="query", left=0, removed=3, alone=3, sole=3
        ),
    )
    assert view.refusal.sentence.startswith("none of 3 hosts has 12 VCPU free")
    assert [each.relaxation.text for each in view.refusal.ways] == ["8 VCPU instead of 12"]
    assert all(each.node is not None for each in (*view.refusal.misses, *view.refusal.ways))
    page = html_of(DECISION_PAGE, view, VIEWING)
    assert view.refusal.sentence[1:] in page
    assert all(f"/ui/hosts/{each.node}" in page for each in view.refusal.misses)


def test_a_project_sees_neither_hosts_nor_numbers_of_them(tmp_path: Path) -> None:
    for refused, vcpus in ((True, 12), (False, 1)):
        folder = tmp_path / f"{vcpus}"
        folder.mkdir()
        record, table = decided_run(folder, flat(7), vcpus, alternates=2, refused=refused)
        view = decision_of(seen(record), table, of_project=True)
        assert view.funnel == () and view.shares == () and view.version is None
        text = msgspec.json.encode(view).decode() + html_of(DECISION_PAGE, view, VIEWING)
        assert "host0" not in text and "cell1" not in text and " 7 " not in text
        assert not any(node in text for node in table.nodes)
        assert (view.refusal is not None) == refused
        if view.refusal is not None:
            assert view.refusal.sentence == "no host has 12 VCPU free; it fits with 8 VCPU instead of 12"


def test_the_steps_of_a_run_without_reasons_are_its_funnel(tmp_path: Path) -> None:
    record, _ = decided_run(tmp_path, flat(3), 12, refused=True)
    bare = msgspec.structs.replace(record.run, reasons=None)
    assert [(each.name, each.left, each.removed) for each in funnel_of(bare)] == [
        ("hosts known", 3, 0),
        ("hosts with candidates", 0, 3),
    ]
    assert funnel_of(msgspec.structs.replace(bare, steps=())) == ()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_shown_as_text(tmp_path: Path, kind: str) -> None:
    name = HOSTILE[kind]
    cloud = flat(1)
    cloud.reports[0] = msgspec.structs.replace(cloud.reports[0], host=name, cell=name)
    record, table = decided_run(tmp_path, cloud, alternates=1)
    run = msgspec.structs.replace(
        record.run,
        project_id=name,
        user_id=name,
        request_id=name,
        spec={**record.run.spec, "flavor": {"name": name, "extra_specs": {name: name}}},
    )
    attempts = [msgspec.structs.replace(each, reason=name) for each in record.attempts]
    record = msgspec.structs.replace(record, run=run, attempts=tuple(attempts))
    check_shown_as_text(html_of(DECISION_PAGE, decision_of(record, table, of_project=False), VIEWING), name)


def test_the_list_is_searched_and_paged_and_each_project_sees_its_own(tmp_path: Path) -> None:
    async def check() -> None:
        async with dashboard_users(tmp_path) as client:
            await ask(client, "project", 2)
            await ask(client, "other", vcpus=99)
            view = await client.view("/ui/decisions")
            assert [each["project_id"] for each in view["decisions"]] == ["other", "project"]
            assert [each["outcome"] for each in view["decisions"]] == ["refused", "building"]
            [placed] = (await client.view("/ui/decisions?project_id=project&host=&since="))["decisions"]
            assert len(placed["hosts"]) == 2
            host = placed["hosts"][0]["name"]
            for query in (f"host={host}", "result=pending", f"request_id={placed['request_id']}"):
                assert (await client.view(f"/ui/decisions?{query}"))["decisions"] == [placed]
            first = await client.view("/ui/decisions?limit=1")
            [second] = (await client.view(f"/ui/decisions?limit=1&marker={first['next']}"))["decisions"]
            assert second == placed
            assert (await client.view("/ui/decisions?refused=true"))["decisions"] == first["decisions"]
            assert (await client.view("/ui/decisions?until=1970-01-01T00:10"))["decisions"] == []
            page = (await client.get("/ui/decisions?limit=1&refused=true")).text
            assert "99 VCPU" in page

            own = await client.view("/ui/decisions", "mia")
            assert [each["project_id"] for each in own["decisions"]] == ["project"]
            assert own["decisions"][0]["hosts"] == []
            assert (await client.get("/ui/decisions?host=a", "mia")).status_code == 403
            assert (await client.get("/ui/decisions?project_id=other", "mia")).status_code == 403
            refused = first["decisions"][0]["run"]
            assert (await client.get(f"/ui/decisions/{refused}", "mia")).status_code == 404
            whole, of_project = [
                (await client.get(f"/ui/decisions/{refused}{query}")).text for query in ("", "?as=project")
            ]
            assert "From all hosts" in whole and "From all hosts" not in of_project

    asyncio.run(check())


async def ask(client: DashboardUsers, project: str, count: int = 1, vcpus: int = 1) -> None:
    """Have a request of a project decided."""
    spec = RequestSpec(project_id=project, user_id="u", flavor=Flavor("small", vcpus, 0))
    with suppress(NoValidHost):
        await client.now.scheduler.select_destinations(HostRequest.new(spec, count))
