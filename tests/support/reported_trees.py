"""Reports of an agent to a placement service over HTTP, with a driver that does what a test says.

An operation is ``[method, arguments]`` of a provider tree. Two are none of its: ``once`` has others call
placement while the tree is being changed, the first time that it is; ``ensure_child`` is ``new_child`` where
the provider is missing.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from roost.agent.agent_context import AsyncioAgentContext
from roost.agent.driver_calls import ConsumerRecords
from roost.agent.errors import ReshapeNeeded, ReshapeRefused
from roost.agent.persistent_state import MemoryState
from roost.agent.protocol.questions import ReadClaims, ReadTree, Reshape, WriteProviders
from roost.agent.protocol.types import Reshaped, SessionKey
from roost.agent.provider_report import report_providers
from roost.agent.provider_tree import ProviderTree
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.placement.client import HttpPlacement
from roost.web.auth.credentials import FixedCredentials
from support.told_calls import Asked, within

SESSION = SessionKey("host", "nonce", 1)
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

Operations = Sequence[Sequence[Any]]


class Reporting:
    """An agent that reports the tree of a root to a service."""

    def __init__(self, service: Asked, root: str, name: str) -> None:
        self._service = service
        self._root, self._name = root, name
        self._done: set[str] = set()

    async def play(
        self, updates: Sequence[Operations], moves: Sequence[Sequence[Any]] = ()
    ) -> list[str | None]:
        """Report after each update. Returns what was refused, None if nothing was.

        ``moves``: what consumers hold goes with the last update, each consumer, class, and the providers
        from which and to which.
        """
        state = MemoryState()
        outcomes = []
        client = within(self._service)
        async with HttpPlacement(FixedCredentials("http://placement", "admin"), client=client) as placement:
            relay = ProviderRelay(placement)
            for number, operations in enumerate(updates, 1):
                moving = moves if number == len(updates) else ()
                driver = _Driver(self._service, self._done, operations, moving)
                context = AsyncioAgentContext(_Cell(relay), driver, state)  # type: ignore[arg-type]
                applied = state.applied.get(self._name, {})
                try:
                    reported = await report_providers(
                        context, SESSION, self._name, self._root, applied, may_reshape=lambda: True
                    )
                    refusals = reported.refusals
                except ReshapeRefused as error:
                    refusals = (str(error),)
                outcomes.append("; ".join(refusals) or None)
        return outcomes


class _Cell:
    """The endpoint of a cell, as far as reports need it."""

    def __init__(self, relay: ProviderRelay) -> None:
        self._relay = relay

    async def ask(self, question: Any) -> Any:
        match question:
            case ReadTree(root=root):
                return await self._relay.read(root)
            case WriteProviders(root=root, writes=writes):
                return await self._relay.write(root, writes)
            case ReadClaims(root=root):
                return await self._relay.claims(root)
            case Reshape(root=root, inventories=inventories, claims=claims):
                return Reshaped(await self._relay.reshape(root, inventories, claims))
        raise TypeError(f"unexpected question {question!r}")


class _Driver:
    """The driver of a host, as far as reports need it."""

    def __init__(
        self, service: Asked, done: set[str], operations: Operations, moves: Sequence[Sequence[Any]]
    ) -> None:
        self._service = service
        self._done = done
        self._operations = operations
        self._moves = moves

    async def fill_tree(self, tree: ProviderTree, node: str) -> ProviderTree:
        if any(name in tree.data(source).inventory for _, name, source, _ in self._moves):
            raise ReshapeNeeded("claims are to move")
        await self._change(tree)
        return tree

    async def reshape_tree(
        self, tree: ProviderTree, node: str, allocations: ConsumerRecords
    ) -> tuple[ProviderTree, ConsumerRecords]:
        await self._change(tree)
        for move in self._moves:
            move_claim(allocations, *move)
        return tree, allocations

    async def _change(self, tree: ProviderTree) -> None:
        for method, arguments in self._operations:
            if method != "once":
                change(tree, method, arguments)
            elif arguments[0] not in self._done:
                self._done.add(arguments[0])
                await asyncio.to_thread(ask, self._service, *arguments[1:])


def change(tree: ProviderTree, method: str, arguments: Sequence[Any]) -> None:
    """Carry out an operation on a tree."""
    if method != "ensure_child":
        getattr(tree, method)(*arguments)
    elif arguments[2] not in tree:
        tree.new_child(*arguments)


def move_claim(allocations: dict[str, Any], consumer: str, name: str, source: str, target: str) -> None:
    """Move what a consumer holds of a class to another provider."""
    held = allocations[consumer]["allocations"]
    amount = held[source]["resources"].pop(name)
    if not held[source]["resources"]:
        del held[source]
    held.setdefault(target, {"resources": {}})["resources"][name] = amount


def ask(service: Asked, method: str, path: str, body: Any = None) -> Any:
    """Call a service, as others do."""
    sent = b"" if body is None else json.dumps(body).encode()
    headers = {**HEADERS, **({"content-type": "application/json"} if sent else {})}
    answer = service.ask(method, path, sent, headers)
    assert answer.status < 300, answer
    return answer.json


def state_of(service: Asked, root: str) -> Any:
    """The tree of a root with all that its providers have, generations and claims included."""
    found = {}
    for each in ask(service, "GET", f"/resource_providers?in_tree={root}")["resource_providers"]:
        base = f"/resource_providers/{each['uuid']}"
        has = [
            ask(service, "GET", f"{base}/{what}")[what] for what in ("inventories", "traits", "aggregates")
        ]
        claims = ask(service, "GET", f"{base}/allocations")["allocations"]
        found[each["uuid"]] = (
            each["name"],
            each["parent_provider_uuid"],
            each["generation"],
            has[0],
            *map(sorted, has[1:]),
            claims,
        )
    return found
