"""The Placement API with tokens of Keystone: who may do what, and what others are told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.process.option_source import Source
from support.keystone import Keystone
from support.placement_api import Api
from web.auth.conftest import configure


@pytest.fixture
def guarded(tmp_path: Path, configured: Source) -> Iterator[Api]:
    api = Api(tmp_path, auth_strategy="keystone", source=configured, enforce_new_defaults=True)
    yield api
    api.close()


def test_roles_and_scopes_decide(keystone: Keystone, guarded: Api) -> None:
    def ask(token: str, *calls: tuple[str, str]) -> list[int]:
        return [guarded.ask(method, path, x_auth_token=token).status_code for method, path in calls]

    reader = keystone.token("rita", "alpha")
    own, others = f"/usages?project_id={keystone.project_id(reader)}", "/usages?project_id=other"
    calls = (("GET", "/resource_providers"), ("GET", own), ("GET", others), ("PUT", "/traits/CUSTOM_A"))
    assert ask(keystone.token(), *calls) == [200, 200, 200, 201]
    assert ask(keystone.token("nova", "service"), *calls) == [200, 200, 200, 204]
    assert ask(reader, *calls) == [403, 200, 403, 403]
    assert ask(keystone.token("mo", "alpha"), *calls) == [403, 200, 403, 403]
    assert ask(keystone.token(project=None), *calls) == [403] * 4


def test_who_proves_nothing_is_told_where_tokens_are_issued(keystone: Keystone, guarded: Api) -> None:
    refused = guarded.ask("GET", "/resource_providers", x_auth_token="no-token", x_roles="admin")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Keystone uri="{keystone.url}"'
    assert refused.json["title"] == "Unauthorized"
    assert guarded.ask("GET", "/", x_auth_token="no-token").status_code == 200


def test_without_keystone_the_answer_is_503(tmp_path: Path) -> None:
    port = free_port()
    source = configure(tmp_path, f"http://127.0.0.1:{port}/v3")
    api = Api(tmp_path, auth_strategy="keystone", source=source)
    answer = api.ask("GET", "/resource_providers", x_auth_token="some-token")
    assert (answer.status_code, answer.json["errors"][0]["status"]) == (503, 503)
    assert api.ask("GET", "/").status_code == 200
    api.close()
