"""Keys without effect are warnings of every answer; what can never be served is refused when it is asked."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from roost.records import Search
from roost.scheduler import SchedulerOptions
from roost.scheduler.options import DEFAULT_FILTERS, KeyOptions
from support.clouds import flat
from support.nova_specs import flavor, request_spec
from support.scheduling_api import FLAVOR, SPEC, error_of, scheduling

HINTED = {**SPEC, "scheduler_hints": {"same_host": ["4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11"]}}


def asking(**changes: Any) -> dict[str, Any]:
    return {**SPEC, **changes}


def flavored(**changes: Any) -> dict[str, Any]:
    return asking(flavor={**FLAVOR, **changes})


def keys(told: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(each["where"], each["key"]) for each in told]


def test_a_key_that_nothing_reads_is_a_warning_of_each_answer_and_of_the_record(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(1)) as api:
            told = [("hint", "same_host")]
            placed = (await api.select(request_spec=HINTED)).json()
            assert keys(placed["warnings"]) == told
            refused = error_of(await api.select(request_spec=HINTED, count=100))
            assert (refused["code"], keys(refused["warnings"])) == ("scheduler.no_valid_host", told)
            for path in ("check", "what-if", "explain"):
                answer = await api.client.post(f"/v1/scheduler/{path}", json={"request_spec": HINTED})
                assert keys(answer.json()["warnings"]) == told
            plain = (await api.select()).json()
            assert "warnings" not in plain
            plainly = await api.client.post("/v1/scheduler/explain", json={"request_spec": SPEC})
            assert "warnings" not in plainly.json()
            await api.service.records.flush(10.0)
            found = await api.service.records.backend.find(Search(), 10)
            warned = {each.run.id: [one.key for one in each.run.warnings] for each in found}
            assert warned[placed["run"]] == warned[refused["run"]] == ["same_host"]
            assert warned[plain["run"]] == []

    asyncio.run(main())


def test_a_conductor_that_knows_no_warnings_gets_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, flat(1)) as api:
            for count in (1, 100):
                for key, warned in ((None, False), ("key-1", True)):
                    # As conductors ask: those of before keys name their run alone.
                    named = {
                        "run": str(uuid.uuid4()),
                        "instances": [str(uuid.uuid4()) for _ in range(count)],
                    }
                    body = {"request_spec": HINTED, **named}
                    headers = {} if key is None else {"idempotency-key": f"{key}-{count}"}
                    answer = await api.client.post("/v1/select_destinations", json=body, headers=headers)
                    told = answer.json() if count == 1 else error_of(answer)
                    assert answer.status_code == (200 if count == 1 else 409), told
                    assert ("warnings" in told) == warned

    asyncio.run(main())


NEVER = [
    (flavored(extra_specs={"resources:CUSTOM_NO_SUCH": "1"}), "CUSTOM_NO_SUCH"),
    (flavored(extra_specs={"resource:VCPU": "1"}), "did you mean resources:VCPU?"),
    (flavored(extra_specs={"resources:VCPU": "-5"}), "'-5' is negative"),
    (flavored(extra_specs={"resources:VCPU": "1.5"}), "'1.5' is not a whole number"),
    (flavored(extra_specs={"trait:CUSTOM_NO_SUCH": "required"}), "CUSTOM_NO_SUCH"),
    (flavored(extra_specs={"pci_passthrough:alias": "nobody:1"}), "nobody"),
    (flavored(extra_specs={"accel:device_profile": "nobody"}), "nobody"),
    (flavored(extra_specs={"hw:cpu_policy": "pinned"}), "hw:cpu_policy='pinned'"),
    (flavored(extra_specs={"hw:cpu_sockets": "two"}), "hw:cpu_sockets='two'"),
    (flavored(vcpus=0, memory_mb=0, disk_gb=0), "no resources"),
    (asking(availability_zone="moon"), "there is no availability zone 'moon'"),
    (asking(scheduler_hints={"gruop": ["x"]}), "did you mean group?"),
    (asking(scheduler_hints={"same_host": ["a"], "different_host": ["a"]}), "both name instance a"),
    (asking(scheduler_hints={"query": ["[nonsense"]}), "query"),
    (asking(requested_destination={"host": "moon"}), "host 'moon' is unknown"),
    (asking(requested_destination={"host": "host0"}, ignore_hosts=["host0"]), "is among ignore_hosts"),
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Posts to a scheduler of one host, with the filters of these tests; nothing may be claimed there."""
    options = SchedulerOptions(filters=(*DEFAULT_FILTERS, "JsonFilter"))
    with asyncio.Runner() as runner:
        entered = scheduling(tmp_path_factory.mktemp("never"), flat(1), options)
        served = runner.run(entered.__aenter__())
        yield lambda path, body: runner.run(served.client.post(f"/v1/{path}", json=body))
        assert served.held() == {}
        runner.run(entered.__aexit__(None, None, None))


@pytest.mark.parametrize(("spec", "named"), NEVER)
def test_what_can_never_be_served_is_refused_when_it_is_asked(
    api: Any, spec: dict[str, Any], named: str
) -> None:
    for path in ("select_destinations", "scheduler/check", "scheduler/what-if", "scheduler/explain"):
        answer = api(path, {"request_spec": spec})
        assert answer.status_code == 400, (path, answer.text)
        assert named in error_of(answer)["detail"]


def test_what_may_be_served_on_other_hosts_is_no_mistake(api: Any) -> None:
    answer = api("scheduler/check", {"request_spec": flavored(vcpus=10_000)})
    assert (answer.status_code, answer.json()) == (200, {"warnings": []})


def test_the_default_zone_is_one_without_any_aggregate(api: Any) -> None:
    assert api("scheduler/check", {"request_spec": asking(availability_zone="nova")}).status_code == 200


def test_an_option_makes_warnings_refusals(tmp_path: Path) -> None:
    async def main() -> None:
        options = SchedulerOptions(keys=KeyOptions(unread_keys="refuse"))
        async with scheduling(tmp_path, flat(1), options) as api:
            answer = await api.select(request_spec=HINTED)
            assert answer.status_code == 400
            assert "same_host has no effect" in error_of(answer)["detail"]
            assert api.held() == {}

    asyncio.run(main())


def test_requests_in_the_form_of_nova_are_answered_as_ever(tmp_path: Path) -> None:
    async def main() -> None:
        options = SchedulerOptions(keys=KeyOptions(unread_keys="refuse"))
        async with scheduling(tmp_path, flat(1), options) as api:
            asked = flavor()
            asked["nova_object.data"]["extra_specs"] = {"hw:cpu_polcy": "x", "hw:watchdog_action": "reset"}
            spec = request_spec(flavor=asked)
            answer = await api.select(request_spec=spec)
            assert answer.status_code == 200, answer.text
            assert set(answer.json()) == {"run", "instances", "selections"}
            await api.service.records.flush(10.0)
            [found] = await api.service.records.backend.find(Search(), 10)
            assert [each.key for each in found.run.warnings] == ["hw:cpu_polcy"]

    asyncio.run(main())
