"""Every operation of every service is closed to those whom its policy rule does not let in.

The operations are the rows of the services: one that is added is tested by being there.
"""

import ast
import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

import roost
from roost.conductor import http as instances
from roost.conductor.agent_endpoint import http as agents
from roost.conductor.agent_endpoint.service import AgentService
from roost.placement import access
from roost.placement.http import operations as placement
from roost.placement.v1 import operations as v1
from roost.scheduler.api import operations as scheduling
from roost.web import health_operations as health
from roost.web.auth import NoAuth
from roost.web.dispatch import Application, dispatch
from roost.web.edge import Edge
from roost.web.health import Health, HealthOptions
from roost.web.health_operations import health_paths
from roost.web.operation import OPEN, Operation
from roost.web.policy import ADMIN, Rule
from support import scheduling_api
from support.clouds import flat
from support.conducting import conducting
from support.placement_api import uuid_of
from support.v1_api import V1Api

SERVICES: dict[str, Sequence[Operation]] = {
    "agents": agents.OPERATIONS,
    "placement": placement.OPERATIONS,
    "v1": v1.OPERATIONS,
    "conductor": instances.OPERATIONS,
    "scheduling": scheduling.OPERATIONS,
    "health": health.OPERATIONS,
}
ALL = [
    pytest.param(operation, id=f"{operation.method} {operation.path}")
    for operations in SERVICES.values()
    for operation in operations
]
PROBED = {"/healthz", "/readyz", "/healthcheck"}
OPEN_PATHS = {"/", "/v1/openapi.json", "/v1/placement/openapi.json", *PROBED}
"""The only paths that may be read without a token. Those of probes also by HEAD."""

QUERIES = {
    "/usages": "project_id=own",
    "/allocation_candidates": "resources=VCPU:1",
    "/v1/allocation_candidates": "resources=VCPU:1",
    "/v1/explain": "resources=VCPU:1",
}
OF_PROJECTS = {
    "/v1/server-groups",
    "/v1/server-groups/{uuid}",
    "/usages",
    "/v1/instances",
    "/v1/instances/{uuid}",
    "/v1/instances/{uuid}/give-up",
    "/v1/instances/{uuid}/history",
    "/v1/hosts/{host}/evacuate",
    "/v1/instances/{uuid}/evacuate",
    "/v1/instances/{uuid}/live-migrate",
    "/v1/instances/{uuid}/migrate",
    "/v1/instances/{uuid}/rebuild",
    "/v1/instances/{uuid}/resize",
    "/v1/instances/{uuid}/shelve",
    "/v1/instances/{uuid}/start",
    "/v1/instances/{uuid}/stop",
    "/v1/instances/{uuid}/unshelve",
    "/v1/moves",
    "/v1/moves/{uuid}",
    "/v1/moves/{uuid}/abort",
    "/v1/moves/{uuid}/confirm",
    "/v1/moves/{uuid}/revert",
    "/v1/scheduler/records",
    "/v1/scheduler/records/{run}",
    "/v1/scheduler/explain",
    "/v1/scheduler/results",
    "/v1/scheduler/what-if",
    "/v1/select_destinations",
    "/v1/use_alternate",
}
"""The paths whose resources belong to projects."""

CREATES_NOTHING = {
    "/v1/agents": "each question has the session of its agent, and is repeated by the protocol of agents",
    "/v1/allocations": "the consumers have names and generations: the same write again is a conflict",
    "/v1/aggregates/{uuid}/members": "a node is a member or none: the same change again changes nothing",
    "/v1/hosts/{host}/accept": "an agent is held or not: the same word again is a conflict",
    "/v1/instances/{uuid}/give-up": "an instance is ended once: the same word again is a conflict",
    "/v1/moves": "a move is confirmed, reverted or aborted once: the same word again changes nothing",
    "/v1/maintenances/plan": "reads",
    "/v1/maintenances/{uuid}": "it is paused, resumed or cancelled: the same word again changes nothing",
    "/v1/nova/external": "reads",
    "/v1/scheduler/check": "reads",
    "/v1/scheduler/explain": "reads",
    "/v1/scheduler/plan-maintenance": "reads",
    "/v1/scheduler/what-if": "reads",
    "/v1/scheduler/results": "the first result of an attempt counts: the same one again changes nothing",
    "/v1/use_alternate": "a claim is moved once: the same move again is found done",
}
"""The paths under ``/v1`` to which POST creates nothing, so that it takes no key, with the reason."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Asks all services: ``served(operation, query="", **headers)`` returns the response."""
    api = V1Api(tmp_path_factory.mktemp("walk"))
    stop, ready = asyncio.Event(), asyncio.Event()
    found: dict[str, Application] = {}

    async def conduct() -> None:
        async with conducting(tmp_path_factory.mktemp("conducting")) as now:
            found["app"] = instances.create_app(
                now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth()
            )
            async with scheduling_api.scheduling(tmp_path_factory.mktemp("scheduling"), flat(1)) as api:
                found["scheduling"] = api.app
                service = AgentService(now.cells["cell1"], now.placement)
                found["agents"] = agents.create_app(service, NoAuth())
                ready.set()
                await stop.wait()

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(conduct())
        await ready.wait()
        return task

    task = api.run(begin())
    under = {
        "/v1": api.v1,
        **dict.fromkeys(instances.PATHS, found["app"]),
        **dict.fromkeys(scheduling.PATHS, found["scheduling"]),
        **dict.fromkeys(agents.PATHS, found["agents"]),
    }
    services = dispatch(under, api.app)
    app = Edge(services, health_paths(Health((), HealthOptions())))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://roost")

    def ask(operation: Operation, query: str = "", **headers: str) -> httpx.Response:
        path = re.sub(r"\{\w+\}", uuid_of("a"), operation.path)
        query = query or QUERIES.get(operation.path, "")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"openstack-api-version": "placement latest", "content-type": "application/json"}
        return api.run(client.request(operation.method, f"{path}?{query}", headers=sent))

    yield ask

    async def end() -> None:
        stop.set()
        await task
        await client.aclose()

    api.run(end())
    api.close()


@pytest.mark.parametrize("operation", ALL)
def test_an_operation_is_open_by_name_or_has_a_rule(operation: Operation) -> None:
    if operation.path in OPEN_PATHS:
        assert operation.method in ({"GET", "HEAD"} if operation.path in PROBED else {"GET"})
        assert operation.rule is OPEN
    else:
        assert isinstance(operation.rule, Rule)


def test_every_rule_is_known_to_the_policy() -> None:
    known = {rule.name for rule in access.default_rules()} | {
        *agents.DEFAULT_RULES,
        *instances.DEFAULT_RULES,
        *scheduling.DEFAULT_RULES,
    }
    for operations in SERVICES.values():
        for operation in operations:
            if isinstance(operation.rule, Rule):
                assert operation.rule.name in known
                assert operation.rule.all_projects in {None, *known}


@pytest.mark.parametrize("operation", ALL)
def test_without_a_token_only_open_operations_answer(served: Any, operation: Operation) -> None:
    assert served(operation).status_code in ({200, 204} if operation.rule is OPEN else {401})


@pytest.mark.parametrize("operation", ALL)
@pytest.mark.parametrize("roles", ["", "guest"])
def test_the_wrong_role_is_refused(served: Any, operation: Operation, roles: str) -> None:
    if operation.rule is not OPEN:
        answer = served(operation, x_auth_token="user:own", x_roles=roles)
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("operation", ALL)
def test_the_wrong_scope_is_refused(served: Any, operation: Operation) -> None:
    """No operation is for tokens of the whole system, whatever their roles."""
    if operation.rule is not OPEN:
        answer = served(
            operation, x_auth_token="user", x_roles="admin,service,member", openstack_system_scope="all"
        )
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("operation", ALL)
def test_the_wrong_project_is_refused(served: Any, operation: Operation) -> None:
    if operation.path not in OF_PROJECTS or operation.method == "POST":
        return
    answer = served(operation, query="project_id=other", x_auth_token="user:own", x_roles="reader,member")
    assert isinstance(operation.rule, Rule)
    closed = instances.DEFAULT_RULES.get(operation.rule.name) == ADMIN
    assert answer.status_code == (404 if "{" in operation.path and not closed else 403), answer.text


def test_operations_of_projects_are_all_there() -> None:
    scoped = {
        operation.path
        for operations in SERVICES.values()
        for operation in operations
        if isinstance(operation.rule, Rule) and (operation.rule.all_projects or operation.rule.project)
    }
    assert scoped == OF_PROJECTS


def test_no_handler_asks_the_policy() -> None:
    """Only the kernel, the tables of rows and the start of a service know the policy."""
    source = Path(roost.__file__).parent
    handlers = {
        operation.handler.__module__ for operations in SERVICES.values() for operation in operations
    } - {agents.__name__, health.__name__}
    for module in handlers:
        tree = ast.parse(source.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text())
        rules = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and node.module in ("roost.web.policy", "roost.web.auth.rules", "roost.placement.access")
            for alias in node.names
        }
        for node in ast.walk(tree):
            attribute = node.attr if isinstance(node, ast.Attribute) else ""
            assert attribute not in ("authorise", "allows", "check", "identity"), (module, attribute)
        # A module may have a table of rows, with their rules, beside the handlers; functions make some.
        functions = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.returns is None or ast.unparse(node.returns) not in ("Rule", "Operation"))
        ]
        used = {
            name.id
            for function in functions
            for statement in function.body
            for name in ast.walk(statement)
            if isinstance(name, ast.Name)
        }
        assert not rules & used, (module, rules & used)


def test_every_post_under_v1_creates_with_a_key_or_says_why_it_takes_none() -> None:
    posts = [
        operation
        for operations in SERVICES.values()
        for operation in operations
        if operation.method == "POST" and operation.path.startswith("/v1/")
    ]
    without = {each.path for each in posts if each.creates is None}
    named = {
        next((at for at in CREATES_NOTHING if f"{path}/".startswith(f"{at}/")), path) for path in without
    }
    assert named == CREATES_NOTHING.keys()
    assert all(each.answer is not None for each in posts if each.creates is not None)
    after = {each.path for each in posts if each.creates is not None and not each.creates.atomic}
    assert after == {
        "/v1/hosts",
        "/v1/hosts/{host}/move",
        "/v1/hosts/{host}/token",
        "/v1/hosts/{host}/evacuate",
        "/v1/instances/{uuid}/evacuate",
        "/v1/instances/{uuid}/live-migrate",
        "/v1/instances/{uuid}/migrate",
        "/v1/instances/{uuid}/rebuild",
        "/v1/instances/{uuid}/resize",
        "/v1/instances/{uuid}/shelve",
        "/v1/instances/{uuid}/start",
        "/v1/instances/{uuid}/stop",
        "/v1/instances/{uuid}/unshelve",
        "/v1/select_destinations",
    }
    others = [each for operations in SERVICES.values() for each in operations if each.method != "POST"]
    assert all(each.creates is None for each in others)
