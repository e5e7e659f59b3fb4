"""Hosts are chosen, claimed and replaced over HTTP; what is wrong is said, and then nothing is claimed."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_policy.policy import RuleDefault

from roost.model.spec import RequestSpec, Selection
from roost.scheduler import SchedulerOptions
from roost.scheduler.api.operations import DEFAULT_RULES
from roost.web.auth.rules import PolicyRules
from support.clouds import Cloud, flat, uuid_of
from support.scheduling_api import FLAVOR, SPEC, SchedulingApi, error_of, scheduling

A, B = uuid_of(0xA0), uuid_of(0xA1)
Work = Callable[[SchedulingApi], Awaitable[None]]


def on(folder: Path, work: Work, cloud: Cloud | None = None, options: SchedulerOptions | None = None) -> None:
    """Do some work on the API; by default on three hosts with 8 VCPU each."""

    async def main() -> None:
        async with scheduling(folder, flat(3) if cloud is None else cloud, options) as api:
            await work(api)

    asyncio.run(main())


def test_hosts_are_chosen_and_claimed(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        answer = await api.select(instances=[A, B], num_alternates=1)
        assert answer.status_code == 200, answer.text
        found = answer.json()["destinations"]
        assert [each["instance"] for each in found] == [A, B]
        assert {each["run"] for each in found} == {answer.json()["run"]}
        held = api.held()
        for each in found:
            assert held[each["instance"]] == each["selected"]["allocations"]
            [alternate] = each["alternates"]
            assert alternate["host"] != each["selected"]["host"]

    on(tmp_path, work)


def test_instances_that_are_not_named_get_names(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        answer = await api.select(count=2)
        assert {each["instance"] for each in answer.json()["destinations"]} == set(api.held())
        assert len(api.held()) == 2

    on(tmp_path, work)


def test_a_refusal_names_its_run_and_claims_nothing(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        spec = {**SPEC, "flavor": {**FLAVOR, "vcpus": 9}}
        answer = await api.select(request_spec=spec, request_id="req-1")
        error = error_of(answer)
        assert (answer.status_code, error["code"]) == (409, "scheduler.no_valid_host")
        assert "VCPU" in error["detail"]
        assert error["steps"][0]["left"] == 3
        assert api.held() == {}
        await api.service.records.flush()
        [kept] = await api.service.records.backend.last(1)
        assert (kept.run.id, kept.run.request_id) == (error["run"], "req-1")

    on(tmp_path, work)


def test_a_refusal_has_its_reasons_as_far_as_the_client_may_see_records(tmp_path: Path) -> None:
    rules = [
        RuleDefault(name, "role:admin" if name == "scheduler:records:all_projects" else check)
        for name, check in DEFAULT_RULES.items()
    ]

    async def main() -> None:
        async with scheduling(tmp_path, flat(3), rules=PolicyRules(rules, None, True)) as api:
            body = {"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpus": 9}}}
            admin = {"x-auth-token": "admin", "x-roles": "admin"}
            whole = error_of(await api.client.post("/v1/select_destinations", json=body, headers=admin))
            assert whole["detail"] == whole["reasons"]["sentence"]
            assert (whole["reasons"]["hosts"], whole["reasons"]["misses"][0]["host"]) == (3, "host0")
            assert whole["steps"][0]["left"] == 3
            answer = await api.select(**body)
            seen = error_of(answer)
            assert (seen["status"], seen["code"]) == (409, "scheduler.no_valid_host")
            assert seen["detail"] == seen["reasons"]["sentence"] == whole["reasons"]["public"]
            assert seen["reasons"]["relaxations"][0]["after"] == 8
            assert not {"hosts", "stages", "misses"} & seen["reasons"].keys()
            assert ("steps" in seen, "host0" in answer.text, seen["run"] != "") == (False, False, True)

    asyncio.run(main())


def test_a_part_may_do(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        spec = {**SPEC, "flavor": {**FLAVOR, "vcpus": 8}}
        refused = await api.select(request_spec=spec, count=4)
        assert refused.status_code == 409
        assert api.held() == {}
        placed = await api.select(request_spec=spec, count=4, min_count=2)
        assert len(placed.json()["destinations"]) == len(api.held()) == 3

    on(tmp_path, work)


def test_an_instance_that_holds_something_is_not_claimed_again(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        assert (await api.select(instances=[A])).status_code == 200
        held = api.held()
        again = await api.select(instances=[A])
        assert (again.status_code, error_of(again)["code"]) == (409, "placement.concurrent_update")
        assert api.held() == held
        replaced = await api.select(instances=[A], generations={A: 1})
        assert replaced.status_code == 200, replaced.text
        assert replaced.json()["destinations"][0]["selected"]["generation"] == 2
        late = await api.select(instances=[A], generations={A: 1})
        assert (late.status_code, error_of(late)["code"]) == (409, "placement.concurrent_update")
        other = await api.select(instances=[A], generations={B: 1})
        assert other.status_code == 400

    on(tmp_path, work)


def test_an_alternate_takes_over_the_claim(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        answer = await api.select(instances=[A], num_alternates=2)
        [destination] = answer.json()["destinations"]
        body = {
            "request_spec": SPEC,
            "instance": A,
            "failed": destination["selected"],
            "reason": "no IP",
            "alternates": destination["alternates"],
            "run": destination["run"],
        }
        first = await api.client.post("/v1/use_alternate", json=body)
        assert first.status_code == 200, first.text
        swapped = first.json()
        assert swapped["selected"]["host"] == destination["alternates"][0]["host"]
        assert [each["host"] for each in swapped["alternates"]] == [destination["alternates"][1]["host"]]
        assert api.held()[A] == swapped["selected"]["allocations"]
        again = await api.client.post("/v1/use_alternate", json=body)
        assert again.json()["selected"] == swapped["selected"], "a lost answer is asked for again"
        nothing = await api.client.post(
            "/v1/use_alternate", json={**body, "failed": swapped["selected"], "alternates": []}
        )
        assert (nothing.status_code, error_of(nothing)["code"]) == (409, "scheduler.no_alternate")
        moved = {**destination["selected"], "generation": 7}
        stale = await api.client.post("/v1/use_alternate", json={**body, "failed": moved, "alternates": []})
        assert (stale.status_code, error_of(stale)["code"]) == (409, "scheduler.stale_claim")
        other = await api.client.post("/v1/use_alternate", json={**body, "instance": B})
        assert (other.status_code, error_of(other)["code"]) == (409, "scheduler.nothing_claimed")

    on(tmp_path, work)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"request_spec": {**SPEC, "flavour": FLAVOR}}, "flavour"),
    ({"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpu": 1}}}, "vcpu"),
    ({"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpus": -1}}}, "flavor.vcpus is -1"),
    ({"request_spec": {**SPEC, "flavor": {**FLAVOR, "vcpus": "1"}}}, "flavor.vcpus"),
    ({"request_spec": {**SPEC, "project_id": ""}}, "project_id"),
    ({"request_spec": {**SPEC, "image": {"properties": {}, "size": 1}}}, "size"),
    ({"request_spec": {**SPEC, "requested_resources": [{"suffix": "1", "amounts": {}}]}}, "amounts"),
    ({"request_spec": {**SPEC, "required_traits": ["CUSTOM_NOBODY_HAS"]}}, "CUSTOM_NOBODY_HAS"),
    ({"request_spec": {"project_id": "p", "user_id": "u"}}, "flavor"),
    ({"instances": [A, A.upper()]}, "twice"),
    ({"instances": [A], "count": 2}, "count is 2"),
    ({"instances": ["not a uuid"]}, "instances"),
    ({"count": 1, "min_count": 2}, "min_count 2"),
    ({"count": 0}, "count"),
    ({"count": 1001}, "count"),
    ({"counts": 1}, "counts"),
]


@pytest.mark.parametrize(("body", "named"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_wrong_is_named(api: Any, body: dict[str, Any], named: str) -> None:
    answer = api(body)
    assert answer.status_code == 400, answer.text
    assert named in error_of(answer)["detail"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks a scheduler of one host for destinations; nothing may be claimed there."""
    with asyncio.Runner() as runner:
        entered = scheduling(tmp_path_factory.mktemp("wrong"), flat(1))
        served = runner.run(entered.__aenter__())
        yield lambda body: runner.run(served.select(**body))
        assert served.held() == {}
        runner.run(entered.__aexit__(None, None, None))


def test_every_field_of_the_types_can_be_sent() -> None:
    """The types are the format: what a client encodes by them is read as the same."""
    import msgspec

    from roost.scheduler.api.wire.language import convert
    from support.clouds import spec

    one = spec(scheduler_hints={"group": ("a",)}, requested_host="host1")
    assert convert(msgspec.json.decode(msgspec.json.encode(one)), RequestSpec) == one
    chosen = Selection("host", A, "cell", {A: {"VCPU": 1}}, {"": [A]}, 1.5, "zone", {"cpu": 2})
    assert convert(msgspec.json.decode(msgspec.json.encode(chosen)), Selection) == chosen
