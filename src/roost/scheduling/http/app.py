"""The scheduler's operations as an ASGI application."""

import falcon.asgi
from oslo_policy.policy import RuleDefault

from roost.auth import Authenticator
from roost.auth.rules import Rules
from roost.ledger import LedgerBusy
from roost.records.errors import RecordsUnavailable
from roost.scheduling.http.conventions import SchedulingConventions
from roost.scheduling.http.operations import DEFAULT_RULES, OPERATIONS
from roost.scheduling.http.service import Service
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.limits import Limits
from roost.web.policy import Policy


def default_rules() -> list[RuleDefault]:
    """The rules without a policy file."""
    return [RuleDefault(name, check, scope_types=["project"]) for name, check in DEFAULT_RULES.items()]


def create_app(
    service: Service,
    authenticator: Authenticator,
    rules: Rules | None = None,
    body_seconds: float = Limits().body_seconds,
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """The API of a scheduler. ``rules`` are by default those without a policy file."""
    kernel = Kernel(
        service,
        authenticator,
        Policy(rules or Rules(default_rules(), None, True)),
        SchedulingConventions(),
        unavailable=(LedgerBusy, StorageError, RecordsUnavailable),
        body_seconds=body_seconds,
    )
    return create_web_app(OPERATIONS, kernel)
