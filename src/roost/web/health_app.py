"""The application of `roost.web.health_operations`."""

from roost.web.app import Kernel, create_app
from roost.web.auth import NoAuth
from roost.web.auth.rules import Rules
from roost.web.dispatch import Application
from roost.web.health import Health
from roost.web.health_operations import OPERATIONS
from roost.web.policy import Policy


def health_paths(health: Health) -> dict[str, Application]:
    """The application by each of its paths. It authenticates nobody, because all its paths are open."""
    app: Application = create_app(OPERATIONS, Kernel(health, NoAuth(), Policy(Rules((), None, True))))
    return {operation.path: app for operation in OPERATIONS}
