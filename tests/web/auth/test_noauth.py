"""``noauth2``: what is believed, the same as upstream believes."""

import asyncio
from typing import Any

import pytest
import webob
from placement.auth import NoAuthMiddleware, PlacementKeystoneContext

from roost.web.auth import NoAuth
from roost.web.auth.identity import READ_HEADERS, read_identity


def upstream(headers: dict[str, str]) -> dict[str, Any] | None:
    """What upstream's policies are checked against, None for a 401."""
    found: list[dict[str, Any]] = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        found.append(dict(environ["placement.context"].to_policy_values()))
        start_response("204 No Content", [])
        return []

    request = webob.Request.blank("/traits", headers=headers)
    answer = request.get_response(NoAuthMiddleware(PlacementKeystoneContext(application)))
    return None if answer.status_int == 401 else found[0]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-auth-token": ""},
        {"x-auth-token": "admin"},
        {"x-auth-token": "user"},
        {"x-auth-token": "user:project:more"},
        {"x-auth-token": "user:"},
        {"x-auth-token": "user", "x-roles": "a, b,"},
        {"x-auth-token": "admin", "x-roles": ""},
        {"x-auth-token": "user", "x-user-id": "other", "x-user": "third"},
        {"x-auth-token": "user:p", "x-project-id": "q", "x-tenant": "r"},
        {"x-auth-token": "user:p", "x-tenant-id": "q"},
        {"x-auth-token": "admin", "openstack-system-scope": "all"},
        {"x-auth-token": "admin", "openstack-system-scope": "all", "x-tenant-id": "q"},
        {"x-auth-token": "admin", "openstack-system-scope": ""},
        {"x-auth-token": "admin", "x-domain-id": "d", "x-user-domain-id": "e", "x-is-admin-project": "False"},
        {"x-auth-token": "u", "x-service-roles": "service", "x-service-user-id": "s"},
    ],
)
def test_an_identity_is_upstreams(headers: dict[str, str]) -> None:
    identity = asyncio.run(NoAuth().identify(headers))
    assert (identity and identity.credentials()) == upstream(headers)


def test_all_headers_that_tell_who_asks_are_named() -> None:
    names: set[str] = set()

    class Asked(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            names.add(name)
            return super().get(name, default)

    read_identity(Asked({"x-user-id": "user"}))
    assert names == set(READ_HEADERS)
