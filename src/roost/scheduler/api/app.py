"""The scheduler's operations as an ASGI application."""

from functools import cache
from typing import Final

import falcon.asgi
import msgspec
from oslo_policy.policy import RuleDefault

from roost.ledger import LedgerBusy
from roost.placement.options import PlacementOptions
from roost.records.errors import RecordsUnavailable
from roost.scheduler.api.conventions import SchedulingConventions
from roost.scheduler.api.kept_answers import SchedulerAnswers
from roost.scheduler.api.operations import DEFAULT_RULES, OPERATIONS
from roost.scheduler.api.service import SchedulerService
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.cors import Cors
from roost.web.forwarded import through_proxies
from roost.web.health_operations import DOCUMENTED
from roost.web.idempotency import KeptAnswers
from roost.web.openapi import OpenApi, describe
from roost.web.operation import OPEN, Operation
from roost.web.policy import Policy
from roost.web.request import Request, Response


async def describe_scheduler_api(service: object, req: Request, resp: Response) -> msgspec.Raw:
    """This document."""
    return document()


DOCUMENT: Final = Operation("GET", "/v1/openapi.json", OPEN, describe_scheduler_api, answer=OpenApi)


@cache
def document() -> msgspec.Raw:
    """Return the document as JSON."""
    described = describe(
        (*OPERATIONS, DOCUMENT, *DOCUMENTED),
        SchedulingConventions("scheduler"),
        title="Roost's scheduler",
        text="Hosts are chosen for instances and claimed in placement; runs are recorded and explained.",
    )
    return msgspec.Raw(msgspec.json.encode(described))


def default_rules() -> list[RuleDefault]:
    """Return the policy rules that apply without a policy file."""
    return [RuleDefault(name, check, scope_types=["project"]) for name, check in DEFAULT_RULES.items()]


def create_app(
    service: SchedulerService,
    authenticator: Authenticator,
    rules: PolicyRules | None = None,
    options: PlacementOptions | None = None,
    *,
    answers: KeptAnswers | None = None,
    documented: bool = False,
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the API of a scheduler.

    ``rules``: by default `default_rules`. ``answers``: the store of answers to requests with a key, by
    default in memory. ``documented``: the API has the OpenAPI document of these operations, as in a process
    that serves nothing else.
    """
    operations = (*OPERATIONS, DOCUMENT) if documented else OPERATIONS
    options = options or PlacementOptions()
    proxies = options.proxies
    kernel = Kernel(
        service,
        authenticator,
        Policy(rules or PolicyRules(default_rules(), None, True)),
        SchedulingConventions("scheduler"),
        unavailable=(LedgerBusy, StorageError, RecordsUnavailable),
        request_type=Request if proxies is None else through_proxies(Request, proxies),
        middleware=(Cors(options.cors),) if options.cors.allowed_origin else (),
        body_seconds=options.limits.body_seconds,
        answers=answers or SchedulerAnswers(),
    )
    return create_web_app(operations, kernel)
