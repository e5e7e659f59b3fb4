"""Scheduler hints that filters read."""

from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.question import Question


def hint(question: Question, name: str) -> str | None:
    """The value of a hint that has one value; None if it is missing.

    Raises:
        BadRequestSpec: it has several values.
    """
    values = question.spec.scheduler_hints.get(name, ())
    if len(values) > 1:
        raise BadRequestSpec(f"scheduler hint {name!r} has {len(values)} values, and one is allowed")
    return values[0] if values else None
