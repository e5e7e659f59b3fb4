"""Access to the Placement API: the authenticator and the policy rules that the options select.

The default rules are upstream's: the roles admin and service may use every operation, only services may
reshape, and the readers of a project may also see its usages. Without ``enforce_new_defaults`` the role admin
may do everything. A token must be scoped to a project.

Source: ``placement/policies`` of OpenStack Placement. A test compares the rules.
"""

from pathlib import Path

from oslo_policy.policy import DeprecatedRule, RuleDefault

from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions
from roost.process.option_source import Source
from roost.web.auth import Authenticator, NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.auth.token_file import TokenFile
from roost.web.policy import Policy

PREFIX = "placement:"

_BEFORE = DeprecatedRule("rule:admin_api", "role:admin", deprecated_reason="roles", deprecated_since="2021.1")
_BASE = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "role:admin or role:service",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": "role:admin or rule:project_reader_api or role:service",
}
_UNSCOPED = "project_reader_api"
_UNCHANGED = "admin_api"

_USUAL = "admin_or_service_api"
_UNUSUAL = {"reshaper:reshape": "service_api", "usages": "admin_or_project_reader_or_service_api"}

RULES = (
    *(f"resource_providers:{verb}" for verb in ("list", "create", "show", "update", "delete")),
    *(f"resource_providers:inventories:{verb}" for verb in ("list", "create", "show", "update", "delete")),
    *(f"resource_providers:aggregates:{verb}" for verb in ("list", "update")),
    *(f"resource_providers:traits:{verb}" for verb in ("list", "update", "delete")),
    "resource_providers:usages",
    "resource_providers:allocations:list",
    *(f"resource_classes:{verb}" for verb in ("list", "create", "show", "update", "delete")),
    *(f"traits:{verb}" for verb in ("list", "show", "update", "delete")),
    *(f"allocations:{verb}" for verb in ("manage", "list", "update", "delete")),
    "allocation_candidates:list",
    "usages",
    "reshaper:reshape",
    # Rules of /v1, which upstream does not have.
    "allocation_candidates:explain",
    "capacity:show",
    "changes:list",
    "word:announce",
)
"""The names of the rules, without `PREFIX`."""


def open_authenticator(options: PlacementOptions) -> Authenticator:
    """Return the authenticator that ``[api] auth_strategy`` selects.

    Raises:
        OperatorError: The options for Keystone's tokens are incomplete or wrong, or the file of service
            tokens cannot be read.
    """
    if options.auth_strategy == "noauth2":
        return NoAuth()
    if options.auth_strategy == "tokens":
        if options.tokens_file is None:
            raise OperatorError(
                "auth_strategy is tokens: set tokens_file in [api], and make one with 'roost token add'"
            )
        return TokenFile(Path(options.tokens_file))
    # Imported only here: its import takes as long as all others together.
    from roost.web.auth.keystone import Keystone

    return Keystone(options.source or Source())


def open_policy(options: PlacementOptions) -> Policy:
    """Return the policy, with the policy files that the options name.

    Raises:
        OperatorError: A policy file cannot be read or parsed.
    """
    return Policy(PolicyRules(default_rules(), options.source, options.enforce_new_defaults))


def default_rules() -> list[RuleDefault]:
    """Return the rules that apply without a policy file."""
    base = [
        RuleDefault(
            name,
            check,
            scope_types=None if name == _UNSCOPED else ["project"],
            deprecated_rule=None if name == _UNCHANGED else _BEFORE,
        )
        for name, check in _BASE.items()
    ]
    named = [
        RuleDefault(PREFIX + rule, f"rule:{_UNUSUAL.get(rule, _USUAL)}", scope_types=["project"])
        for rule in RULES
    ]
    return base + named
