"""The application of `roost.web.health_operations`."""

from roost.web.app import Kernel, create_app
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application
from roost.web.health import Health
from roost.web.health_operations import OPERATIONS
from roost.web.policy import Policy


def health_paths(health: Health) -> dict[str, Application]:
    """Return the application by each of its paths. All are open, so it authenticates no requests."""
    app: Application = create_app(OPERATIONS, Kernel(health, NoAuth(), Policy(PolicyRules((), None, True))))
    return {operation.path: app for operation in OPERATIONS}
