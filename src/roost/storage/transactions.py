"""Transactions: functions of a connection and their arguments.

A decorated function is called with its arguments alone. That runs nothing: it returns a `Transaction`, which
a database runs, with a connection, when it is its turn::

    @transaction
    def release_lease(connection: Connection, name: str, holder: str) -> None: ...

    await database.write(release_lease("conductor/a", holder))

In a transaction, another one is a part of it: ``release_lease(name, holder)(connection)``. Transactions that
many callers run at the same time are structs with a batch form instead: see `roost.storage.batches`.
"""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy.engine import Connection

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Transaction(Generic[T_co]):
    """The statements of one transaction: a decorated function with its arguments.

    ``function``: the decorated function, by which tests know it. ``is_short``: see `short_read`. ``enters``:
    see `entering`.
    """

    __slots__ = ("_body", "arguments", "enters", "function", "is_short", "options")

    def __init__(
        self,
        function: Callable[..., "Transaction[T_co]"],
        body: Callable[..., T_co],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        is_short: bool,
        enters: Collection[str],
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.options = options
        self.is_short = is_short
        self.enters = enters
        self._body = body

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._body.__name__

    def __call__(self, connection: Connection, /) -> T_co:
        """Execute the statements in the transaction of a connection."""
        return self._body(connection, *self.arguments, **self.options)

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.name}({', '.join((*map(repr, self.arguments), *options))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transaction) and self._key == other._key

    def __hash__(self) -> int:
        function, arguments, options = self._key
        return hash((function, arguments, frozenset(options.items())))

    @property
    def _key(self) -> tuple[object, tuple[Any, ...], dict[str, Any]]:
        return self.function, self.arguments, self.options


def transaction(body: Callable[Concatenate[Connection, P], T]) -> Callable[P, Transaction[T]]:
    """Make a function of a connection and arguments one of its arguments that returns a `Transaction`.

    A transaction that is rolled back runs again, so the function has no effect except on the connection.
    """
    return _binding(body)


def short_read(body: Callable[Concatenate[Connection, P], T]) -> Callable[P, Transaction[T]]:
    """Make a transaction of a function that needs none, as `transaction` does.

    It is one short statement that reads, or several that may each see another snapshot. Without a transaction
    a statement costs one message to a server instead of three: see `roost.storage.Database.read`.
    """
    return _binding(body, is_short=True)


def entering(
    *states: str,
) -> Callable[[Callable[Concatenate[Connection, P], T]], Callable[P, Transaction[T]]]:
    """Make a transaction as `transaction` does. ``states``: those that rows may enter by it."""
    return lambda body: _binding(body, enters=states)


def states_entered(work: object) -> Collection[str]:
    """Return the states that rows may enter by a transaction: of `entering`, or the struct's ``enters``."""
    entered: Collection[str] = getattr(work, "enters", ())
    return entered


def _binding(
    body: Callable[Concatenate[Connection, P], T], is_short: bool = False, enters: Collection[str] = ()
) -> Callable[P, Transaction[T]]:
    @wraps(body)
    def bind(*arguments: P.args, **options: P.kwargs) -> Transaction[T]:
        return Transaction(bind, body, arguments, options, is_short, enters)

    return bind
