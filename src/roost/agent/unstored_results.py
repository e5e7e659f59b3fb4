"""The results of orders that the cell has not stored yet, and the orders that late answers repeat."""

from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import (
    Build,
    CancelMigration,
    Destroy,
    Destroyed,
    MigrateGuest,
    Order,
    OrderKind,
    PowerResult,
    ReceiveGuest,
    StartGuest,
    StopGuest,
)
from roost.model.instance import BuildResult

OPPOSITES: dict[OrderKind, OrderKind] = {"stop": "start", "start": "stop"}
"""The kind of the orders that reverse orders of a kind."""

_OF_POWER: tuple[OrderKind, ...] = (*OPPOSITES, "migrate", "cancel")
"""The kinds of the orders whose result is a `PowerResult`."""

_OF_BUILDS: tuple[OrderKind, ...] = ("build", "receive")
"""The kinds of the orders whose result is a `BuildResult`."""

_Key = tuple[str, int]


class UnstoredResults:
    """The results that the cell has not stored yet, by instance and attempt.

    Of the results of orders to stop and to start a guest only the last one is kept. A result stays until a
    poll that carried it is answered. The answer to a poll that was sent before that one may repeat the order,
    or one that was reversed: such orders are settled.
    """

    def __init__(self) -> None:
        self.builds: dict[_Key, BuildResult] = {}
        self.destroyed: dict[_Key, Destroyed] = {}
        self.powered: dict[_Key, PowerResult] = {}
        # By kind, instance and attempt: the number of the first poll whose answer may bring the order.
        self._first: dict[tuple[OrderKind, str, int], int] = {}

    def is_settled(self, order: Order, counter: int) -> bool:
        """Return whether an order has a result already, or was reversed.

        ``counter``: the number of the poll whose answer brought it.
        """
        return self._has_result(order) or self._first.get((order.kind, *order.key), 0) > counter

    def _has_result(self, order: Order) -> bool:
        match order:
            case Build() | ReceiveGuest():
                return order.key in self.builds
            case Destroy():
                return order.key in self.destroyed
        result = self.powered.get(order.key)
        return result is not None and result.runs == isinstance(order, StartGuest)

    def reverse(self, order: StopGuest | StartGuest, counter: int) -> None:
        """Note that an order, from the answer to poll ``counter``, reverses the opposite ones before it."""
        self._first[OPPOSITES[order.kind], *order.key] = counter
        self.powered.pop(order.key, None)

    def switched(
        self, order: StopGuest | StartGuest | MigrateGuest | CancelMigration, failure: str | None
    ) -> None:
        """Keep the result of an order to stop or to start a guest, or to have it go."""
        self.powered[order.key] = PowerResult(*order.key, runs=isinstance(order, StartGuest), failure=failure)

    def acknowledged(self, poll: Poll) -> None:
        """Note that the cell has stored the results that a poll carried."""
        for result in poll.results:
            self.builds.pop((result.instance, result.attempt), None)
            for kind in _OF_BUILDS:
                self._first[kind, result.instance, result.attempt] = poll.counter
        for each in poll.destroyed:
            self.destroyed.pop((each.instance, each.attempt), None)
            self._first["destroy", each.instance, each.attempt] = poll.counter
        for power in poll.powered:
            key = power.instance, power.attempt
            # The order that reverses it may have a result meanwhile.
            if self.powered.get(key) is power:
                del self.powered[key]
            for kind in _OF_POWER:
                self._first[kind, *key] = poll.counter

    def forget(self, oldest: int | None) -> None:
        """Note that no poll before number ``oldest`` can be answered any more; None: no poll at all."""
        kept = {} if oldest is None else self._first
        self._first = {key: counter for key, counter in kept.items() if oldest and counter > oldest}
