"""What an identity may do: the one place that says yes or no, by the rule names of upstream's policy."""

from roost.placement.errors import Forbidden
from roost.placement.http.auth import Identity

PREFIX = "placement:"

_SERVICE_ONLY = frozenset(("reshaper:reshape",))
_PROJECT_READERS_TOO = frozenset(("usages",))


class Policy:
    """The default rules.

    Everything is for the roles admin and service; a reshape is for services (and for admins while the
    new defaults are not enforced); a project's usages are also for its readers. A token that is not
    scoped to a project may do nothing.
    """

    def __init__(self, enforce_new_defaults: bool = True) -> None:
        self._enforce_new_defaults = enforce_new_defaults

    def authorise(self, identity: Identity, rule: str, project_id: str | None = None) -> None:
        """Raise `Forbidden` unless ``rule`` lets the identity act (on ``project_id``, if it is named)."""
        if identity.project_id is None or not self._allows(identity, rule, project_id):
            raise Forbidden(f"Policy does not allow {PREFIX}{rule} to be performed.")

    def _allows(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        if "service" in identity.roles:
            return True
        if "admin" in identity.roles:
            return rule not in _SERVICE_ONLY or not self._enforce_new_defaults
        return (
            rule in _PROJECT_READERS_TOO and "reader" in identity.roles and identity.project_id == project_id
        )
