"""Works as tests tell them apart: calls of transactions, and structs."""

import inspect
from collections.abc import Callable
from typing import Any


def is_of(work: object, kind: Callable[..., Any]) -> bool:
    """Whether a work is a call of a transaction (`roost.storage.transaction`), or has a type."""
    return isinstance(work, kind) if isinstance(kind, type) else getattr(work, "function", None) is kind


def name_of(work: Any) -> str:
    """The name of a work: of its function, or of its type."""
    name: str = getattr(work, "function", type(work)).__name__
    return name


def arguments_of(work: Any) -> dict[str, Any]:
    """The arguments of a call of a transaction by name, without its defaults."""
    return inspect.signature(work.function).bind(None, *work.arguments, **work.options).arguments
