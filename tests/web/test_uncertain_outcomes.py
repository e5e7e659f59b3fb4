"""A 503 says whether the request may be sent again: ``Retry-After`` means that nothing will be done."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from roost.storage import Database, DatabaseUnavailable, OutcomeUnknown
from support.conductor_api import ADMIN, FLAVOR, api
from support.ledgers import upgrade
from support.placement_api import Api, uuid_of

CONDUCTOR_WRITES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/v1/instances", {"flavor": FLAVOR}),
    ("POST", "/v1/server-groups", {"name": "web", "policy": "affinity"}),
    ("POST", "/v1/aggregates", {"name": "rack", "metadata": {}}),
    ("POST", "/v1/audit/rounds", {}),
    ("POST", "/v1/hosts", {"cell": "cell1", "hosts": ["new"]}),
)
PLACEMENT_WRITES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/resource_providers", {"name": "p", "uuid": uuid_of("p")}),
    ("PUT", "/traits/CUSTOM_A", None),
    ("PUT", "/resource_classes/CUSTOM_A", None),
)
FAILURES: tuple[tuple[type[DatabaseUnavailable], str, str | None], ...] = (
    (OutcomeUnknown, "roost.outcome_unknown", None),
    (DatabaseUnavailable, "placement.undefined_code", "1"),
)


def failing(kind: type[DatabaseUnavailable]) -> Callable[..., Any]:
    async def write(self: Database, work: object) -> object:
        raise kind("no answer")

    return write


@pytest.mark.parametrize(("kind", "code", "retry_after"), FAILURES)
def test_conductors_say_whether_a_write_may_be_sent_again(
    tmp_path, monkeypatch, kind, code, retry_after
) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            with monkeypatch.context() as away:
                away.setattr(Database, "write", failing(kind))
                for method, path, body in CONDUCTOR_WRITES:
                    answer = await client.request(method, path, json=body, headers=ADMIN)
                    assert answer.status_code == 503, (path, answer.text)
                    own = code.replace("placement.undefined_code", "conductor.unavailable")
                    assert answer.json()["errors"][0]["code"] == own, path
                    assert answer.headers.get("retry-after") == retry_after, path

    asyncio.run(run())


@pytest.mark.parametrize(("kind", "code", "retry_after"), FAILURES)
def test_placement_says_whether_a_write_may_be_sent_again(
    tmp_path, monkeypatch, kind, code, retry_after
) -> None:
    upgrade(f"sqlite:///{tmp_path / 'roost.db'}")
    api = Api(tmp_path)

    async def refuse(*_: object) -> object:
        raise kind("no answer")

    monkeypatch.setattr(api.ledger, "execute", refuse)
    for method, path, body in PLACEMENT_WRITES:
        answer = api.ask(method, path, body)
        assert answer.status_code == 503, (path, answer.text)
        assert answer.json["errors"][0]["code"] == code, path
        assert answer.headers.get("retry-after") == retry_after, path
    monkeypatch.undo()
    api.close()


def test_an_uncertain_outcome_is_told_in_words_and_named_in_the_document() -> None:
    from roost.conductor.http import OPERATIONS
    from roost.web.conventions import Conventions
    from roost.web.openapi import describe

    document = describe(OPERATIONS, Conventions(), title="", text="")
    described = document["paths"]["/v1/instances"]["post"]["responses"]["503"]["description"]
    assert "may be carried out later" in described
    assert "later" not in document["paths"]["/v1/instances"]["get"]["responses"]["503"]["description"]
