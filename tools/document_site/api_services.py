"""The services: their operations, policy rules and OpenAPI documents."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from oslo_policy.policy import RuleDefault

from document_site.markdown import label_of
from roost.conductor import http as conductor
from roost.conductor.agent_endpoint import http as agents
from roost.dashboard import app as dashboard
from roost.dashboard.app import DASHBOARD_RULES
from roost.placement import access
from roost.placement.http import app as placement
from roost.placement.http import operations as placement_operations
from roost.placement.v1 import operations as v1
from roost.placement.v1.service import document_of
from roost.placement.wire.microversions import LATEST
from roost.scheduler.api import app as scheduler
from roost.scheduler.api import operations as scheduler_operations
from roost.server.neighbours import app as neighbours
from roost.web.conventions import Conventions
from roost.web.health_operations import DOCUMENTED
from roost.web.openapi import Document, describe
from roost.web.operation import Operation


class ApiService(NamedTuple):
    """A service with an HTTP API.

    ``name``: the name of its page. ``programs``: the sentence about the commands that serve it.
    ``operations``: those of its document, without probes and the document itself.
    """

    name: str
    title: str
    programs: str
    operations: Sequence[Operation]
    document: Document

    def label(self, operation: Operation) -> str:
        """Return the label of an operation, by which pages link to it."""
        return operation_label(self.name, operation.method, operation.path)


class RuleSet(NamedTuple):
    """The policy rules of a service, or of several."""

    title: str
    rules: Sequence[RuleDefault]


def operation_label(service: str, method: str, path: str) -> str:
    """Return the label of an operation, by which pages link to it."""
    return label_of("operation", service, method, path)


def api_services() -> Sequence[ApiService]:
    """Return all services with an HTTP API."""
    return _PLACEMENT, _V1, _SCHEDULER, _CONDUCTOR, _AGENTS, _NEIGHBOURS


def rule_sets() -> Sequence[RuleSet]:
    """Return the policy rules of all services, each once."""
    return (
        RuleSet("Placement", access.default_rules()),
        RuleSet("Scheduler", scheduler.default_rules()),
        RuleSet("Conductors", conductor.default_rules()),
        RuleSet("Dashboard", [each for each in dashboard.default_rules() if each.name in DASHBOARD_RULES]),
        RuleSet("Agents", agents.default_rules()),
        RuleSet("Neighbours", neighbours.default_rules()),
    )


def all_operations() -> Iterator[tuple[Operation, str | None]]:
    """Yield each operation with its label; None for pages of the dashboard, which no document describes."""
    for service in api_services():
        yield from ((each, service.label(each)) for each in service.operations)
    yield from ((each, None) for each in dashboard.OPERATIONS)


def _json(document: Any) -> Document:
    loaded: Document = json.loads(bytes(document))
    return loaded


_PLACEMENT = ApiService(
    "placement",
    "The Placement API",
    "`roost serve` and `roost up` serve it, as OpenStack Placement does.",
    placement_operations.OPERATIONS,
    _json(placement.document_at(LATEST)),
)
_V1 = ApiService(
    "v1",
    "Placement under /v1",
    "`roost serve` and `roost up` serve it beside the Placement API.",
    v1.OPERATIONS,
    document_of((*v1.OPERATIONS, *DOCUMENTED)),
)
_SCHEDULER = ApiService(
    "scheduler",
    "The scheduler",
    "`roost scheduler` and `roost up` serve it.",
    scheduler_operations.OPERATIONS,
    _json(scheduler.document()),
)
_CONDUCTOR = ApiService(
    "conductor",
    "The conductor",
    "`roost conductor` and `roost up` serve it.",
    conductor.OPERATIONS,
    _json(conductor.document()),
)
_AGENTS = ApiService(
    "agents",
    "The endpoint of agents",
    "`roost cell-conductor` serves it to the agents of its cell.",
    agents.OPERATIONS,
    describe(
        agents.OPERATIONS,
        Conventions(),
        title="The endpoint of a cell's agents",
        text="Agents ask the conductor of their cell, each with the token of its host.",
    ),
)
_NEIGHBOURS = ApiService(
    "neighbours",
    "Ports and accelerators",
    "`roost neighbours` serves it, where no cloud has Neutron and Cyborg.",
    neighbours.OPERATIONS,
    describe(
        neighbours.OPERATIONS,
        neighbours.NeighbourConventions(),
        title="Ports and accelerators",
        text="The parts of Neutron and Cyborg that agents use. Bodies of responses have their form there.",
    ),
)
