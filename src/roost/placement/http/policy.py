"""Upstream's policy: the names of the rules, what they are without a policy file, and who is asked.

Everything is for the roles admin and service; a reshape is for services; a project's usages are also for
its readers. While the new defaults are not enforced, the role admin may do everything. A token must be
scoped to a project.
"""

from oslo_policy.policy import DeprecatedRule, RuleDefault

from roost.auth import Identity, Source
from roost.auth.rules import Rules
from roost.placement.errors import Forbidden

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
_OF_A_PROJECT = frozenset(("usages",))
"""The rules that are about the project asked for; all others are about the asker's own."""

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
    # Of /v1, which upstream has not.
    "allocation_candidates:explain",
    "changes:list",
)


class Policy:
    """Authorises the operations of placement."""

    def __init__(self, enforce_new_defaults: bool = True, source: Source | None = None) -> None:
        """``source`` says where policy files are; without it there are none. Raises `OperatorError`."""
        self._rules = Rules(default_rules(), source, enforce_new_defaults)

    def authorise(self, identity: Identity, rule: str, project_id: str | None = None) -> None:
        """Raise `Forbidden` unless ``rule`` allows it (for ``project_id``, if it is about a project)."""
        of = project_id if rule in _OF_A_PROJECT else identity.project_id
        if not self._rules.allows(identity, PREFIX + rule, of):
            raise Forbidden(f"Policy does not allow {PREFIX}{rule} to be performed.")


def default_rules() -> list[RuleDefault]:
    """The rules as they are without a policy file."""
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
