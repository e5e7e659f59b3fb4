"""Moves to a host that is forced: no filter evaluates it, its room is claimed all the same."""

import asyncio

from oslo_policy.policy import RuleDefault

from roost.conductor.http import default_rules
from roost.model.move_states import REQUESTED
from roost.state.cell_database.moves import read_all_moves
from roost.web.auth.rules import PolicyRules
from roost.web.policy import PROJECT_WRITER
from support.conductor_api import TOKEN, api, asked_for
from support.moving_cloud import Cloud, playing

ODD = {"name": "odd", "vcpus": 1, "memory_mb": 0, "extra_specs": {"capabilities:hypervisor_type": "odd"}}
"""A flavor that no host of the cloud passes the filters for."""


async def _target(cloud: Cloud) -> str:
    """A host of the instance's cell that the instance is not on."""
    shown = await cloud.shown()
    return next(each for each in {"cell1": "abc", "cell2": "de"}[shown["cell"]] if each != shown["host"])


def test_a_host_that_filters_reject_is_the_target_if_it_is_forced(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        path, target = f"/v1/instances/{cloud.instance}/resize", await _target(cloud)
        refused = (await cloud.ask("POST", path, {"flavor": ODD, "host": target})).json()
        assert refused["forced"] is False
        await cloud.now.settle()
        ended = await cloud.move(refused["uuid"])
        assert (ended["state"], "No valid host" in ended["reason"]) == ("failed", True)
        forced = await cloud.ask("POST", path, {"flavor": ODD, "host": target, "force": True})
        assert (forced.status_code, forced.json()["forced"]) == (202, True), forced.text
        uuid = forced.json()["uuid"]
        await cloud.run_on_target(uuid)
        assert (await cloud.shown())["host"] == target
        # It binds this move alone.
        await cloud.word("confirm", uuid)
        await cloud.destroy(1, refused["source_host"])
        cell = await cloud.now.cell_of(cloud.instance)
        [spec] = [each.spec for each in (await cell.read(read_all_moves())).values() if each.uuid == uuid]
        assert spec.force_hosts == ()

    playing(tmp_path, play)


def test_a_forced_host_without_room_is_refused_by_its_claim(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        path, target = f"/v1/instances/{cloud.instance}/resize", await _target(cloud)
        big = {"name": "big", "vcpus": 5, "memory_mb": 0}
        asked = await cloud.ask("POST", path, {"flavor": big, "host": target, "force": True})
        assert (asked.status_code, asked.json()["state"]) == (202, REQUESTED)
        await cloud.now.settle()
        ended = await cloud.move(asked.json()["uuid"])
        assert (ended["state"], "No valid host" in ended["reason"]) == ("failed", True)

    playing(tmp_path, play)


def test_forcing_needs_a_host_that_is_not_disabled(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        target = await _target(cloud)
        for verb, body in (
            ("migrate", {}),
            ("resize", {"flavor": ODD}),
            ("evacuate", {"evidence": "it burns"}),
        ):
            path = f"/v1/instances/{cloud.instance}/{verb}"
            refused = await cloud.ask("POST", path, {**body, "force": True})
            assert (refused.status_code, "force needs a host" in refused.text) == (400, True), refused.text
        await cloud.ask("PUT", f"/v1/hosts/{target}", {"enabled": False, "reason": "new memory"})
        refused = await cloud.migrate({"host": target, "force": True})
        assert (refused.status_code, "is disabled: new memory" in refused.text) == (400, True)

    playing(tmp_path, play)


def test_forcing_has_a_policy_rule_of_its_own(tmp_path) -> None:
    allowed = [
        RuleDefault(each.name, PROJECT_WRITER if each.name == "conductor:moves:create" else each.check_str)
        for each in default_rules()
    ]

    async def run() -> None:
        async with api(tmp_path, rules=PolicyRules(allowed, None, True)) as (now, client):
            [mine] = await asked_for(client, 1)
            await now.settle()
            path = f"/v1/instances/{mine}/migrate"
            refused = await client.post(path, json={"host": "a", "force": True}, headers=TOKEN)
            assert (refused.status_code, "conductor:moves:forced_host" in refused.text) == (403, True)
            assert (await client.post(path, json={}, headers=TOKEN)).status_code == 202

    asyncio.run(run())
