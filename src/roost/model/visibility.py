"""Visibility: the parts of a decision that each role may see. Every view goes through `visible`.

An operator sees all of a decision. A project sees the content, the times and the results of its own requests.
It does not see the number of hosts, the names of hosts, nodes and cells, other tenants, and texts of
operators and drivers. Each type that is shown has a rule, declared by `seen_by_project`; a type without a
rule is shown to no project.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import msgspec

from roost.model.reasons import OF_THE_REQUEST, Reasons
from roost.model.record import Attempt, Run
from roost.model.what_if import WhatIf

T = TypeVar("T")

NO_VALID_HOST = "No valid host was found."
"""The reason of a refusal that has no public reason."""

BUILD_FAILED = "No host could build the instance."
"""The reason of an instance whose builds failed, as its project sees it."""


class Viewer(Enum):
    """Roles of readers of decisions. The policy rule ``all_projects`` of an operation makes an operator."""

    OPERATOR = "operator"
    PROJECT = "project"


class NoRuleOfView(TypeError):
    """No rule says what a project sees of a type. This is a defect; nothing is shown."""


_RULES: dict[type, Callable[[Any], Any]] = {}


def visible(decision: T, viewer: Viewer) -> T:
    """Return the part of a decision that a viewer may see.

    Raises:
        NoRuleOfView: no rule says what a project sees of a decision of this type.
    """
    if viewer is Viewer.OPERATOR:
        return decision
    rule = _RULES.get(type(decision))
    if rule is None:
        raise NoRuleOfView(f"no rule says what a project sees of {type(decision).__name__}")
    seen: T = rule(decision)
    return seen


def seen_by_project(kind: type[T]) -> Callable[[Callable[[T], T]], Callable[[T], T]]:
    """Declare a function as the rule of a type: it returns the part that a project sees.

    Subclasses need rules of their own.
    """

    def declared(rule: Callable[[T], T]) -> Callable[[T], T]:
        _RULES[kind] = rule
        return rule

    return declared


def shown_whole(*kinds: type) -> None:
    """Declare that a project sees all of the values of these types."""
    for kind in kinds:
        _RULES[kind] = lambda value: value


def has_rule(kind: type) -> bool:
    """Return whether a rule says what a project sees of a type."""
    return kind in _RULES


def seen(decision: T) -> T:
    """Return the part of a decision that its project may see, for the rules of types that contain it."""
    return visible(decision, Viewer.PROJECT)


_OF_THE_USER = frozenset(
    {
        "project_id",
        "user_id",
        "flavor",
        "operation",
        "image",
        "volume_backed",
        "availability_zone",
        "required_traits",
        "forbidden_traits",
        "scheduler_hints",
    }
)
"""The fields of a request spec that a project sees. Others have names of hosts, networks and aggregates."""


@seen_by_project(Reasons)
def _reasons(reasons: Reasons) -> Reasons:
    """Show the public sentence, and the relaxations that a user can make."""
    relaxations = tuple(
        msgspec.structs.replace(each, host="", without=())
        for each in reasons.relaxations
        if each.kind in OF_THE_REQUEST
    )
    return Reasons(
        sentence=reasons.public,
        public=reasons.public,
        placed=reasons.placed,
        relaxations=relaxations,
        complete=reasons.complete,
    )


@seen_by_project(Run)
def _run(run: Run) -> Run:
    """Show the request with its times, and the public reason of a refusal."""
    reasons = None if run.reasons is None else _reasons(run.reasons)
    return Run(
        id=run.id,
        request_id=run.request_id,
        global_request_id=run.global_request_id,
        project_id=run.project_id,
        user_id=run.user_id,
        instances=run.instances,
        spec={name: value for name, value in run.spec.items() if name in _OF_THE_USER},
        started_at=run.started_at,
        finished_at=run.finished_at,
        version=None,
        refusal=None if run.refusal is None else NO_VALID_HOST if reasons is None else reasons.sentence,
        min_count=run.min_count,
        reasons=reasons,
        warnings=run.warnings,
    )


@seen_by_project(Attempt)
def _attempt(attempt: Attempt) -> Attempt:
    """Show the number of an attempt, its times and its result."""
    return msgspec.structs.replace(attempt, host="", node="", cell="", weight=0.0, reason=None, version=None)


@seen_by_project(WhatIf)
def _what_if(found: WhatIf) -> WhatIf:
    """Show the number of instances that fit, and the public reason why not one more does."""
    binds = None if found.binds is None else _reasons(found.binds)
    return WhatIf(
        fits=found.fits,
        limited=found.limited,
        complete=found.complete,
        warnings=found.warnings,
        on_hosts=0,
        hosts=0,
        binds=binds,
    )
