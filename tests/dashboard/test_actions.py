"""Actions: what is asked before them, what is sent to the conductor, and what is shown after it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.dashboard.actions.client import ConductorClient, check_endpoint
from roost.dashboard.html.shell import Viewing
from roost.dashboard.options import DashboardOptions
from roost.dashboard.pages.events import in_words
from roost.model.errors import OperatorError
from support.dashboard_users import DashboardUsers, dashboard_users

VIEWING = Viewing("olga", True, "guard", "/ui/actions/drain", nonce="nonce", acts=True)


def on_a_dashboard(directory: Path, check: Callable[[DashboardUsers], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as users:
            await check(users)

    asyncio.run(opened())


async def enabled(users: DashboardUsers, path: str) -> Any:
    answer = await users.conductor.get(path, headers={"x-auth-token": "olga"})
    assert answer.status_code == 200, answer.text
    return answer.json()["enabled"]


async def events(users: DashboardUsers) -> list[Any]:
    answer = await users.conductor.get("/v1/events?limit=1000", headers={"x-auth-token": "olga"})
    return [each for each in answer.json()["events"] if not each["kind"].startswith("instance_")]


@pytest.mark.parametrize(
    ("subject", "path"),
    [("host=a", "/v1/hosts/a"), ("cell=cell2", "/v1/cells/cell2"), ("host=a&node=node-a&cell=cell1", None)],
)
def test_a_place_is_disabled_and_enabled_by_the_user(tmp_path: Path, subject: str, path: str | None) -> None:
    async def check(users: DashboardUsers) -> None:
        fields = dict(part.split("=") for part in subject.split("&"))
        asked = await users.view(f"/ui/actions/disable?{subject}")
        assert asked["user"] == "olga" and asked["hindered"] is None and asked["place"]["enabled"]
        page = await users.get(f"/ui/actions/disable?{subject}")
        assert 'data-post="/ui/actions/disable"' in page.text and "Disable" in page.text

        answer = await users.post("/ui/actions/disable", {**fields, "reason": "fan 3"})
        assert answer.status_code == 200, answer.text
        assert "The conductor has done it" in answer.text and "fan 3" in answer.text
        if path is not None:
            assert await enabled(users, path) is False
        [event] = [each for each in await events(users) if each["kind"].endswith("_disabled")]
        assert event["by"]["user_id"] == "olga" and event["detail"] == "fan 3"
        # The page shows the record: the event with the name, and its request.
        assert event["by"]["request_id"] in answer.text and f">{in_words(event['kind'])}</a>" in answer.text

        answer = await users.post("/ui/actions/enable", fields, accept="application/json")
        view = answer.json()
        assert view["result"]["result"] == "done" and view["place"]["enabled"] is True
        assert view["event"]["by"]["user_id"] == "olga"
        if path is not None:
            assert await enabled(users, path) is True

    on_a_dashboard(tmp_path, check)


def test_the_question_says_what_will_happen_and_changes_nothing(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        made = await users.ask_for("mia", 8)
        placed = (await users.view("/ui/instances"))["page"]["instances"]
        there = [each["uuid"] for each in placed if each["host"] == "a"]
        assert there and len(made) == 8
        for verb in ("disable", "drain", "enable"):
            for subject in ("host=a", "cell=cell1", "host=a&node=node-a"):
                assert (await users.get(f"/ui/actions/{verb}?{subject}")).status_code == 200
        assert (await users.get(f"/ui/actions/delete?instance={made[0]}", "mia")).status_code == 200
        assert await events(users) == [] and await enabled(users, "/v1/hosts/a") is True

        view = await users.view("/ui/actions/drain?host=a")
        assert view["place"]["instances"] == len(there)
        [vcpu] = [each for each in view["place"]["free"] if each["resource_class"] == "VCPU"]
        assert (vcpu["free"], vcpu["capacity"]) == (4 - len(there), 4)
        assert any(f"{len(there)} instance" in each for each in view["will"])
        assert any("The drain ends when the last one is gone" in each for each in view["will"])
        await users.now.super.watch.look()
        cell = (await users.view("/ui/actions/drain?cell=cell1"))["place"]
        assert cell["hosts"] == 3 and cell["hosts_up"] is not None

    on_a_dashboard(tmp_path, check)


def test_a_drain_shows_the_instances_that_are_left(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        await users.ask_for("mia", 8)
        answer = await users.post("/ui/actions/drain", {"host": "a"})
        assert "is being drained" in answer.text and "/ui/instances?host=a&amp;cell=cell1" in answer.text
        [event] = [each for each in await events(users) if each["kind"] == "host_disabled"]
        assert event["detail"] == "it is drained"
        again = await users.view("/ui/actions/enable?host=a")
        assert again["place"]["reason"] == "it is drained"

    on_a_dashboard(tmp_path, check)


def test_an_instance_is_deleted_by_its_project_and_not_by_others(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        [mine] = await users.ask_for("mia")
        [theirs] = await users.ask_for("otto")

        assert (await users.get(f"/ui/actions/delete?instance={theirs}", "mia")).status_code == 404
        answer = await users.post("/ui/actions/delete", {"instance": theirs}, "mia")
        assert answer.status_code == 404 and "The conductor refuses it" in answer.text
        # A reader may look, and the policy of the conductor says no more. The page offers no more, either.
        for user, offered in (("rita", False), ("mia", True), ("olga", True)):
            page = await users.get(f"/ui/instances/{mine}", user)
            assert page.status_code == 200 and (f"/ui/actions/delete?instance={mine}" in page.text) is offered
        for answer in (
            await users.get(f"/ui/actions/delete?instance={mine}", "rita"),
            await users.post("/ui/actions/delete", {"instance": mine}, "rita"),
        ):
            assert answer.status_code == 403
        states = (await users.view("/ui/instances"))["page"]["instances"]
        assert {each["state"] for each in states} == {"assigned"}

        question = await users.get(f"/ui/actions/delete?instance={mine}", "mia")
        assert "Its claim is given back" not in question.text and "node-" not in question.text
        answer = await users.post("/ui/actions/delete", {"instance": mine}, "mia")
        assert answer.status_code == 200 and "is being deleted" in answer.text
        history = (await users.view(f"/ui/instances/{mine}"))["history"]
        assert history["actions"][-1]["kind"] == "delete" and history["actions"][-1]["user_id"] == "mia"

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize("user", ["mia", "rita", "otto"])
def test_no_project_has_words(tmp_path: Path, user: str) -> None:
    async def check(users: DashboardUsers) -> None:
        for verb in ("enable", "disable", "drain"):
            for subject in ({"host": "a"}, {"cell": "cell1"}, {"host": "a", "node": "node-a"}):
                query = "&".join(f"{name}={value}" for name, value in subject.items())
                assert (await users.get(f"/ui/actions/{verb}?{query}", user)).status_code == 403
                assert (await users.post(f"/ui/actions/{verb}", subject, user)).status_code == 403
        assert await events(users) == []

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize(
    "head",
    [
        {"x-roost-session": ""},
        {"x-roost-session": "wrong"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "rebound.example"},
    ],
)
def test_a_foreign_page_changes_nothing(tmp_path: Path, head: dict[str, str]) -> None:
    async def check(users: DashboardUsers) -> None:
        [uuid] = await users.ask_for("mia")
        for path, fields in (
            ("/ui/actions/disable", {"host": "a"}),
            ("/ui/actions/drain", {"cell": "cell1"}),
            ("/ui/actions/delete", {"instance": uuid}),
        ):
            answer = await users.post(path, fields, **head)
            assert answer.status_code in (403, 421)
        assert await events(users) == [] and await enabled(users, "/v1/hosts/a") is True
        assert (await users.view(f"/ui/instances/{uuid}"))["instance"]["state"] == "assigned"

    on_a_dashboard(tmp_path, check)


def test_a_get_of_an_action_is_its_question(tmp_path: Path) -> None:
    """A link, an image or a prefetch of another page sends a GET with the cookie at most."""

    async def check(users: DashboardUsers) -> None:
        answer = await users.get("/ui/actions/disable?host=a&reason=x")
        assert answer.status_code == 400
        answer = await users.get("/ui/actions/disable?host=a", **{"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200 and await enabled(users, "/v1/hosts/a") is True

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"node": "node-a"}, 400),
        ({"host": ".."}, 400),
        ({"host": "nowhere"}, 404),
        ({"cell": "nowhere"}, 404),
        ({"host": "a/../../instances"}, 404),
        ({"host": "a", "node": "elsewhere"}, 404),
        ({"cell": "cell0"}, 409),
        ({"host": "a", "reason": "x" * 1001}, 400),
        ({"host": "a", "more": "x"}, 400),
    ],
)
def test_an_unknown_subject_is_refused(tmp_path: Path, fields: dict[str, str], status: int) -> None:
    async def check(users: DashboardUsers) -> None:
        answer = await users.post("/ui/actions/disable", fields)
        assert answer.status_code == status, answer.text
        assert await events(users) == []

    on_a_dashboard(tmp_path, check)


class Conductors:
    """Conductors that answer in place of the real one, and note what they were asked with."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.asked: list[httpx.Request] = []

        def noted(request: httpx.Request) -> httpx.Response:
            self.asked.append(request)
            return answer(request)

        transport = httpx.MockTransport(noted)
        self.client = ConductorClient(httpx.AsyncClient(transport=transport, base_url="http://conductor"))


def _fail(error: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("it broke", request=request)

    return answer


@pytest.mark.parametrize(
    ("answer", "result", "status"),
    [
        (_fail(httpx.ReadTimeout), "unknown", 502),
        (_fail(httpx.RemoteProtocolError), "unknown", 502),
        (_fail(httpx.ReadError), "unknown", 502),
        (lambda _: httpx.Response(503, json={"errors": [{"code": "roost.outcome_unknown"}]}), "unknown", 502),
        (lambda _: httpx.Response(500, text="<script>"), "unknown", 502),
        (_fail(httpx.ConnectError), "unreached", 503),
        (_fail(httpx.ConnectTimeout), "unreached", 503),
        (lambda _: httpx.Response(403, json={"errors": [{"detail": "not <b>you</b>"}]}), "refused", 403),
        (lambda _: httpx.Response(409, text="not JSON"), "refused", 409),
    ],
)
def test_an_answer_whose_fate_is_unknown_is_shown_as_that(
    tmp_path: Path, answer: Callable[[httpx.Request], httpx.Response], result: str, status: int
) -> None:
    async def check(users: DashboardUsers) -> None:
        conductors = Conductors(answer)
        users.serve(replace(users.service, actions=conductors.client))
        page = await users.post("/ui/actions/disable", {"host": "a"})
        assert page.status_code == status
        words = {
            "unknown": "It is not known whether this was done",
            "unreached": "nothing was done",
            "refused": "The conductor refuses it",
        }
        for each, sentence in words.items():
            assert (sentence in page.text) == (each == result), page.text
        assert "<b>" not in page.text and "is disabled" not in page.text
        # Each request has the token of the user, and no other.
        assert [each.headers["x-auth-token"] for each in conductors.asked] == ["olga"]

    on_a_dashboard(tmp_path, check)


def test_without_a_conductor_nothing_can_be_done_and_the_page_says_why(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        [uuid] = await users.ask_for("mia")
        users.serve(replace(users.service, actions=None))
        page = await users.get("/ui/actions/disable?host=a")
        assert page.status_code == 200
        assert "data-post" not in page.text.split("<main")[1] and "conductor_endpoint" in page.text
        assert (await users.post("/ui/actions/disable", {"host": "a"})).status_code == 409
        one = (await users.get(f"/ui/instances/{uuid}")).text
        assert "/ui/actions/delete" not in one and "No actions here" in one
        assert await enabled(users, "/v1/hosts/a") is True

    on_a_dashboard(tmp_path, check)


def test_a_program_acts_with_its_token(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        answer = await users.http.post(
            "/ui/actions/disable",
            data={"host": "a"},
            headers={"x-auth-token": "olga", "accept": "application/json"},
        )
        assert answer.status_code == 200 and answer.json()["event"]["by"]["user_id"] == "olga"
        assert (await users.http.post("/ui/actions/disable", data={"host": "a"})).status_code == 303

    on_a_dashboard(tmp_path, check)


def test_the_endpoint_is_checked_at_the_start(tmp_path: Path) -> None:
    check_endpoint(DashboardOptions())
    check_endpoint(DashboardOptions(conductor_endpoint="https://conductor.example:8781"))
    with pytest.raises(OperatorError, match="no URL"):
        check_endpoint(DashboardOptions(conductor_endpoint="conductor:8781"))
    missing = f"{tmp_path / 'nowhere.pem'}"
    with pytest.raises(OperatorError, match="conductor_ca_file"):
        check_endpoint(DashboardOptions(conductor_endpoint="https://a", conductor_ca_file=missing))
