"""Policy rules of operations, and the projects that a request may reach."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import falcon.asgi
import msgspec
from msgspec import Meta

from roost.model.visibility import Viewer
from roost.web.auth import Identity
from roost.web.auth.rules import PolicyRules
from roost.web.errors import Forbidden

ADMIN: Final = "role:admin"
"""The check of rules for administrators."""

PROJECT_READER: Final = "role:admin or ((role:reader or role:member) and project_id:%(project_id)s)"
"""The check of rules for readers of the resources of a project."""

PROJECT_WRITER: Final = "role:admin or (role:member and project_id:%(project_id)s)"
"""The check of rules for writers of the resources of a project."""


class Projects(msgspec.Struct, frozen=True):
    """The projects whose resources a request may reach: one, all, or none."""

    project_id: str | None = None
    all: bool = False

    def include(self, project_id: str) -> bool:
        """Return whether the request may reach resources of a project."""
        return self.all or project_id == self.project_id


NO_PROJECT: Final = Projects()
ALL_PROJECTS: Final = Projects(all=True)


class OfProjects(msgspec.Struct, forbid_unknown_fields=True):
    """Query parameters of every list of resources that belong to projects."""

    project_id: Annotated[str | None, Meta(description="Only resources of this project.")] = None
    all_projects: Annotated[bool, Meta(description="The resources of all projects.")] = False


def check_filters(query: object, viewer: Viewer) -> None:
    """Check that only operators filter by attributes that only operators see.

    The type of a query names these filters in ``OF_OPERATORS``.

    Raises:
        Forbidden: a viewer who is no operator uses one of them.
    """
    if viewer is Viewer.OPERATOR:
        return
    for name in getattr(query, "OF_OPERATORS", ()):
        if getattr(query, name) is not None:
            raise Forbidden(f"A project cannot search by {name}.")


@dataclass(frozen=True)
class Rule:
    """The policy rule of an operation.

    - ``name``: the rule's name in policy files.
    - ``project``: returns the project that the rule is checked against. None: the project of the token.
    - ``all_projects``: for operations on resources that belong to projects, the name of the rule that
      allows access to the resources of all projects.
    - ``of_body``: returns the names of further rules that must allow a request with this body.
    """

    name: str
    project: Callable[[falcon.asgi.Request], str | None] | None = None
    all_projects: str | None = None
    of_body: Callable[[Any], Iterable[str]] | None = None


class Policy:
    """Decides about operations by policy rules."""

    def __init__(self, rules: PolicyRules) -> None:
        self._rules = rules

    def check(self, identity: Identity, rule: str, project_id: str | None) -> None:
        """Check one rule against a project.

        Raises:
            Forbidden: The rule does not allow it.
        """
        if not self.allows(identity, rule, project_id):
            raise Forbidden(f"Policy does not allow {rule} to be performed.")

    def allows(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        """Return whether one rule allows an identity to act on resources of a project."""
        return self._rules.allows(identity, rule, project_id)

    def viewer(self, identity: Identity, rule: str) -> Viewer:
        """Return the role in which an identity views resources. ``rule``: the one for all projects."""
        allowed = self._rules.allows(identity, rule, identity.project_id)
        return Viewer.OPERATOR if allowed else Viewer.PROJECT

    def reachable(self, identity: Identity, rule: str, query: object) -> Projects:
        """Return the projects that a request may reach.

        A list (its query is `OfProjects`) reaches the token's project, unless the query has ``project_id`` or
        ``all_projects``. An operation on one resource reaches all projects if ``rule`` allows it, else the
        token's.

        Raises:
            Forbidden: The query asks for other projects and ``rule`` does not allow it, or the token has no
                project.
        """
        own = identity.project_id
        if isinstance(query, OfProjects):
            if query.all_projects or query.project_id not in (None, own):
                self.check(identity, rule, own)
                return ALL_PROJECTS if query.project_id is None else Projects(query.project_id)
        elif self._rules.allows(identity, rule, own):
            return ALL_PROJECTS
        if own is None:
            raise Forbidden("The token has no project.")
        return Projects(own)
