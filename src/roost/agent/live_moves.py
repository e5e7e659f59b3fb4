"""Guests that move while they run: the part of the source's agent, and that of the target's.

The source has a running guest go to the target, which has prepared to receive it. Neither agent knows alone
which of the two hosts has the guest in the end, so each says what it sees: the target that the guest runs
there, the source that it has none any more, or that it runs on. Between these words neither starts a guest,
nor destroys one that may run: only orders to destroy do.
"""

from collections.abc import Callable

from roost.agent.agent_context import AgentContext
from roost.agent.errors import BuildEnded, NotMigrated
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Confirm
from roost.agent.protocol.types import CancelMigration, MigrateGuest, ReceiveGuest
from roost.model.instance import BuildResult
from roost.model.text import error_text

LONGEST_PAUSE = 30.0
"""Seconds between two attempts at something that fails again and again, at most."""

NOT_ARRIVED = "the guest has left the source, and has not arrived on the target"

CANCELLED = "the migration was ended"


class LiveMoves:
    """Carries out the orders of live moves on a host.

    ``confirmation``: returns the question what a target is to do; None while no order may be carried out.
    ``outranked``: returns whether another order for an instance waits. ``failed``: makes the result of a
    target that cannot prepare. ``retry_seconds``: the first pause after a failure.
    """

    def __init__(
        self,
        context: AgentContext,
        host: str,
        confirmation: Callable[[str, int], Confirm | None],
        outranked: Callable[[str], bool],
        failed: Callable[[ReceiveGuest, Exception], BuildResult],
        retry_seconds: float,
    ) -> None:
        self._context = context
        self._host = host
        self._confirmation = confirmation
        self._outranked = outranked
        self._failed = failed
        self._retry_seconds = retry_seconds

    async def receive(self, order: ReceiveGuest, asked: float) -> BuildResult | None:
        """Receive a guest; returns None if the attempt is no longer wanted or not this host's to judge.

        The result is a success as soon as the guest runs here, whatever the cell knows. It is a failure if
        the host cannot prepare, and the source was not told to begin; or if the source has no guest any more
        and this host has none either.
        """
        instance, attempt = order.key
        pause = self._retry_seconds
        prepared = False
        while not self._outranked(instance):
            try:
                if await self._runs(order):
                    return BuildResult(instance, self._host, attempt)
                if not prepared:
                    left = asked + order.seconds - self._context.monotonic()
                    if not order.begun and left <= 0:
                        return None
                    prepared = await self._prepare(order, left)
                    if prepared:
                        pause = self._retry_seconds
                wanted = await self._ask(order.key)
                if wanted is None:
                    # Somebody waits for the answer at the endpoint: it is not asked in vain.
                    pause = self._retry_seconds if prepared else min(2 * pause, LONGEST_PAUSE)
                elif not wanted:
                    await self._leave(order)
                    return None
                elif await self._runs(order):
                    return BuildResult(instance, self._host, attempt)
                else:
                    await self._leave(order)
                    return BuildResult(instance, self._host, attempt, NOT_ARRIVED, retryable=False)
            except BuildEnded:
                return None
            except AgentProtocolError as error:
                self._tell("a target cannot ask its cell now", instance, error)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception as error:
                if not (prepared or order.begun):
                    result = self._failed(order, error)
                    await self._leave(order)
                    return result
                self._tell("the driver failed to receive a guest", instance, error)
                pause = min(2 * pause, LONGEST_PAUSE)
            await self._context.sleep(pause)
        return None

    async def _prepare(self, order: ReceiveGuest, left: float) -> bool:
        """Prepare for a guest within ``left`` seconds; returns whether the host is ready.

        Once the source was told to begin, a failure is no error: nobody but this host can say that the guest
        has not come, also if it never gets ready again.
        """
        try:
            work = self._context.driver.receive(order.instance)
            await self._context.within(self._retry_seconds if left <= 0 else left, work)
        except BuildEnded:
            raise
        except Exception as error:
            if not order.begun:
                raise
            self._tell("the driver failed to receive a guest", order.key[0], error)
            return False
        return True

    async def migrate(self, order: MigrateGuest) -> str | None:
        """Have a guest go to its target; returns why it runs on here, None if it does not."""
        instance, attempt = order.key
        pause = self._retry_seconds
        while not self._outranked(instance):
            try:
                there = (await self._context.driver.guests()).get(instance)
                if there != attempt:
                    return None
                await self._context.driver.migrate(instance, order.target)
                return None
            except NotMigrated as error:
                return error_text(error)
            except Exception as error:
                # Whether the guest is on its way is not known: it is not given up.
                self._tell("the driver failed to migrate a guest", instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return CANCELLED

    async def end(self, instance: str, is_under_way: Callable[[], bool]) -> None:
        """End a migration that is under way, as another order waits for it.

        It is ended again until it is over: the first time may come before the driver has begun it.
        """
        pause = self._retry_seconds
        while is_under_way():
            try:
                await self._context.driver.end_migration(instance)
            except Exception as error:
                self._tell("the driver failed to end a migration", instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def cancel(self, order: CancelMigration) -> str | None:
        """End a migration; returns why the guest runs on here, None if it does not."""
        instance, attempt = order.key
        pause = self._retry_seconds
        while not self._outranked(instance):
            try:
                await self._context.driver.end_migration(instance)
                there = (await self._context.driver.guests()).get(instance)
                return CANCELLED if there == attempt else None
            except Exception as error:
                self._tell("the driver failed to end a migration", instance, error)
            await self._context.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return CANCELLED

    async def _runs(self, order: ReceiveGuest) -> bool:
        return (await self._context.driver.guests()).get(order.key[0]) == order.key[1]

    async def _ask(self, key: tuple[str, int]) -> bool | None:
        question = self._confirmation(*key)
        return None if question is None else await self._context.cell.ask(question)

    async def _leave(self, order: ReceiveGuest) -> None:
        """Remove what is prepared, unless the guest runs; if that fails, it only takes space."""
        try:
            if not await self._runs(order):
                await self._context.driver.destroy(order.key[0], "none")
        except Exception as error:
            self._tell("the driver failed to clean up", order.key[0], error)

    def _tell(self, event: str, instance: str, error: Exception) -> None:
        values = {"host": self._host, "instance": instance, "error": error_text(error)}
        self._context.log(event, values, "warning")
