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


def hint_values(question: Question, name: str) -> tuple[str, ...]:
    """All values of a hint; empty if it is missing, or has one value, which is empty."""
    values = question.spec.scheduler_hints.get(name, ())
    return () if values == ("",) else values
