"""Instances that are named by a uuid, the beginning of one, or a name."""

from typing import Any

import pytest

from roost.cli.connection import ServiceConnection
from roost.cli.instance_names import uuid_of
from roost.cli.service_client import RequestRefused, ServiceClient

INSTANCES = {
    "abcd0000-0000-4000-8000-000000000001": ("web", "mine"),
    "abcd0000-0000-4000-8000-000000000002": ("web-2", "mine"),
    "beef0000-0000-4000-8000-000000000003": ("twice", "mine"),
    "cafe0000-0000-4000-8000-000000000004": ("twice", "mine"),
    "dead0000-0000-4000-8000-000000000005": ("beef", "mine"),
    "feed0000-0000-4000-8000-000000000006": ("theirs", "other"),
}


@pytest.fixture(params=[True, False], ids=["admin", "member"])
def client(request, monkeypatch) -> tuple[ServiceClient, bool]:
    def ask(self: ServiceClient, method: str, path: str, body: Any = None, query: Any = None) -> Any:
        if query["all_projects"] and not request.param:
            raise RequestRefused(403, "not for you")
        found = [
            {"uuid": uuid, "state": "active"}
            for uuid, (name, project) in INSTANCES.items()
            if (query["all_projects"] or project == "mine")
            and query.get("name") in (None, name)
            and uuid.startswith(query.get("uuid_prefix") or "")
        ]
        return {"instances": found[: query["limit"]]}

    monkeypatch.setattr(ServiceClient, "ask", ask)
    return ServiceClient(ServiceConnection("conductor", "http://nowhere", "a test")), request.param


@pytest.mark.parametrize(
    ("named", "last"),
    [
        ("web", 1),
        ("web-2", 2),
        ("cafe", 4),
        ("CAFE0000-0", 4),
        ("abcd0000-0000-4000-8000-000000000002", 2),
        ("beef", 5),  # a name counts before the beginning of a uuid
    ],
)
def test_what_names_one_instance_is_found(client, named: str, last: int) -> None:
    assert uuid_of(client[0], named).endswith(str(last))


@pytest.mark.parametrize("named", ["abcd", "twice"])
def test_what_names_several_lists_them(client, named: str) -> None:
    with pytest.raises(RequestRefused, match="2 instances are named") as refused:
        uuid_of(client[0], named)
    assert sum(uuid in str(refused.value) for uuid in INSTANCES) == 2


@pytest.mark.parametrize("named", ["abc", "webb", "0000", ""])
def test_what_names_none_is_told(client, named: str) -> None:
    with pytest.raises(RequestRefused, match=f"no instance '{named}'") as refused:
        uuid_of(client[0], named)
    assert refused.value.status == 404
    assert ("four or more" in str(refused.value)) == (named == "abc")


def test_only_who_may_sees_those_of_other_projects(client) -> None:
    conductor, admin = client
    if admin:
        assert uuid_of(conductor, "theirs").endswith("6")
    else:
        with pytest.raises(RequestRefused, match="no instance 'theirs'"):
            uuid_of(conductor, "theirs")
