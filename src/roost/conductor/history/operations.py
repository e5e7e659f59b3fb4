"""The operation of histories, and its policy rule."""

from typing import Final

from roost.conductor.history.handlers import show_history
from roost.conductor.history.types import InstanceHistory
from roost.web.operation import Operation
from roost.web.policy import PROJECT_READER, Rule

_RULE: Final = "conductor:instances:history"

HISTORY_RULES: Final = {_RULE: PROJECT_READER}
"""The policy rule as it is without a policy file."""


def history_operation(path: str, all_projects: str) -> Operation:
    """Return the operation below the path of an instance.

    ``all_projects``: the policy rule that allows to see the whole history.
    """
    rule = Rule(_RULE, all_projects=all_projects)
    return Operation("GET", f"{path}/history", rule, show_history, answer=InstanceHistory)
