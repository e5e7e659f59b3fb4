"""The agent of one host: its polls, and the tasks beside them that report results and providers."""

from collections.abc import Mapping

import msgspec

from roost.agent.agent_context import AgentContext
from roost.agent.errors import StateUnusable
from roost.agent.fence import AgentFence
from roost.agent.host_session import NOT_KEPT, TAKEN_BACK, HostSession, HostSessions
from roost.agent.node_providers import NodeProviders
from roost.agent.node_reports import SentReports, node_reports, read_facts, read_guests
from roost.agent.options import POLLS_OF_FENCE, AgentTimes
from roost.agent.outbox import Outbox
from roost.agent.protocol.errors import AgentProtocolError, CellTakenBack, LateMessage, SessionLost
from roost.agent.protocol.questions import Confirm, Poll, RenewToken
from roost.agent.protocol.types import Build, Guest, Polled, ReceiveGuest, SessionKey, StartGuest, digest_of
from roost.agent.troubles import Troubles
from roost.agent.workload import AgentWorkload
from roost.model.fence import Fence
from roost.model.service_version import SERVICE_VERSION
from roost.process.context import lasting
from roost.process.metrics import catalogue as metrics

NOT_TAKEN = "the cell does not take the reports of nodes"
_NO_POLL = "the cell does not take a poll"
_NO_TOKEN = "the token of a host is renewed later"


class HostAgent:
    """The agent of one host. It asks ``cell``, ``driver`` and ``state``.

    The agent keeps nothing that matters in memory: the cell says which guests should be on the host, the
    driver which ones are. ``polled`` and ``reported``: a first poll and a first report of the host's
    providers have ended, with success or not.
    """

    def __init__(
        self,
        context: AgentContext,
        host: str,
        *,
        times: AgentTimes | None = None,
        enabled: bool = True,
        fence: Fence | None = None,
    ) -> None:
        self._context = context
        self.host = host
        self.enabled = enabled
        self.polled = self.reported = False
        self._times = times or AgentTimes()
        self._topic = f"agent/{host}"
        self._troubles = Troubles(context, host)
        if fence is not None:
            poll = min(self._times.poll, fence.seconds / POLLS_OF_FENCE)
            self._times = msgspec.structs.replace(self._times, poll=poll)
        self._sessions = HostSessions(context, host, self._times, self._troubles, fence)
        self._work = AgentWorkload(
            context, host, self._topic, self._confirmation, self._times.start, self._times.retry
        )
        self.fence: AgentFence | None = None
        if fence is not None:
            self.fence = AgentFence(context, host, fence, self._work, self._troubles)
            self._work.may_start, self._work.settled = self.fence.may_start, self.fence.settle
        self._outbox = Outbox(context, self._work, self._topic, self._times.gather)
        self._reports = SentReports(self._times.health, self._times.refresh)
        self.providers = NodeProviders(context, host, self._times.refresh, self._troubles, self._work)

    async def run(self) -> None:
        """Serve the host for ever. Raises `StateUnusable` if its state cannot be used at the start."""
        await self._sessions.load()
        if self.fence is not None:
            # In force before the cell is told of it.
            await self.fence.load()
            self._context.start(f"{self._topic}/fence", lasting(self._context, "fence", self.fence.run))
        await self._open()
        self._context.start(f"{self._topic}/providers", self._keep_reporting())
        self._context.start(f"{self._topic}/results", self._keep_sending())
        if self._times.token != float("inf"):
            self._context.start(f"{self._topic}/token", self._keep_token())
        failures = 0
        while True:
            try:
                if self._sessions.current is None:
                    await self._open()
                await self._poll()
                failures = 0
                self._troubles.over(_NO_POLL)
                self._has_begun()
                if self.providers.reshaping:
                    # The endpoint sends orders that were left out with each answer at once.
                    await self._context.sleep(self._times.retry)
                else:
                    await self._outbox.gather()
            except AgentProtocolError as error:
                failures += 1
                self._troubles.tell(_NO_POLL, error)
                self._has_begun()
                await self._context.sleep(self._times.pause(failures))
            except StateUnusable as error:
                # A disk that is full for a while ends no host: it goes on with what it has in memory.
                failures += 1
                self._troubles.tell(NOT_KEPT, error, "error")
                await self._context.sleep(self._times.pause(failures))

    def _has_begun(self) -> None:
        if not self.polled:
            self.polled = True
            self._context.wake(start_topic(self.host))

    @property
    def session(self) -> SessionKey | None:
        """The session of the host; None if it has none."""
        return None if (session := self._sessions.current) is None else session.key

    @property
    def held(self) -> str | None:
        """The reason why the agent carries out no orders; None if it does."""
        return self._sessions.held

    async def _open(self) -> None:
        """Open a session, in which the cell has had nothing yet; repeat it until the cell grants one."""
        # The cell may have the session since the first of several requests.
        asked = self._context.monotonic()
        if self.fence is not None:
            await self.fence.begin()
        await self._sessions.open()
        if self.fence is not None:
            await self.fence.answered(asked)
        else:
            # The cell does not rely on the fence of an earlier agent any more.
            await self._context.state.keep_answered(None)
        self._work.unstored.forget(None)
        self._reports.forget()

    def _confirmation(self, instance: str, attempt: int) -> Confirm | None:
        """Return the question whether a build may start; None while no order may be carried out."""
        session = self._sessions.current
        if session is None or self.held is not None:
            return None
        return Confirm(session.key, instance, attempt, session.counted, waits=True)

    async def _poll(self, *, wants_orders: bool = True) -> None:
        """Send a heartbeat, and begin the orders in its answer. Raises `AgentProtocolError`."""
        session = self._sessions.current
        if session is None:
            return
        wait = session.wait if wants_orders else 0.0
        facts = await read_facts(self._context, self.host, self._troubles)
        asked = self._context.monotonic()
        # From here to the request nothing may change in between: results and digest belong together.
        guests = await read_guests(self._context, self._troubles)
        running = {} if guests is None else guests
        building = self._work.under_construction
        there = self._work.busy | running.keys()
        session.node_of = {i: node for i, node in session.node_of.items() if i in there}
        reports = node_reports(
            self.host,
            facts,
            enabled=self.enabled and self.held is None,
            running=running,
            building=building,
            failed_builds=self._work.failed_builds,
            node_of=session.node_of,
            refused=self.providers.refused,
        )
        settled = {key[0]: key[1] for key in running.items() if self._work.leaves_alone(*key)}
        session.counter += 1
        poll = Poll(
            session=session.key,
            counter=session.counter,
            # A new session begins once an operator has accepted the cell's state.
            counted=session.counted if self.held is None else 0,
            wait_seconds=wait,
            wants_orders=wants_orders,
            **self._outbox.contents(waits=wants_orders)._asdict(),
            reports=self._reports.due(reports, asked),
            digest=None if guests is None else digest_of(settled.items()),
            guests=_listed(settled) if session.wants_guests and guests is not None else None,
            building=self._work.known("build"),
            destroying=self._work.known("destroy"),
            stopping=self._work.known("stop"),
            starting=self._work.known("start"),
            receiving=self._work.known("receive"),
            migrating=self._work.known("migrate"),
            cancelling=self._work.known("cancel"),
            held=self.held,
            disabled=session.is_disabled,
            service_version=SERVICE_VERSION,
            fenced=() if self.fence is None or guests is None else self.fence.told(running),
        )
        session.sent.add(poll.counter)
        if wants_orders:
            self._outbox.waits(poll)
        try:
            answer = await self._context.cell.ask(poll)
        except SessionLost:
            self._sessions.end(session)
            raise
        except CellTakenBack:
            if self._sessions.current is session and self.held is None:
                await self._sessions.hold(TAKEN_BACK)
            return
        except LateMessage:
            return
        finally:
            session.sent.discard(poll.counter)
            if wants_orders:
                self._outbox.waits(None)
        metrics.HEARTBEATS.inc()
        if self.fence is not None and answer.is_counted:
            await self.fence.answered(asked)
            await self.fence.seen(running)
        if self._sessions.current is session:
            await self._take(session, poll, answer, asked)

    async def _take(self, session: HostSession, poll: Poll, answer: Polled, asked: float) -> None:
        """Apply the answer to a poll."""
        if answer.accepted and self.held is not None and self.held == poll.held:
            await self._sessions.accept()
            return
        self._work.unstored.acknowledged(poll)
        self._work.unstored.forget(min(session.sent, default=poll.counter))
        if answer.is_counted:
            session.counted = max(session.counted, poll.counter)
        if poll.counter > session.answered:
            session.answered = poll.counter
            if answer.wants_reports:
                self._reports.forget()
            else:
                self._reports.take(poll.reports, asked)
            self._take_disabled(session, answer.disabled)
            session.wants_guests = answer.wants_guests
            session.wait = 0.0 if answer.wants_guests or answer.wants_reports else self._times.poll
        await self._sessions.take_position(session, answer.position)
        if self.held is not None:
            return
        await self._take_refused(answer.refused)
        if asked - self._sessions.kept_at >= self._times.keep:
            await self._sessions.keep()
        for order in answer.orders:
            if self.providers.reshaping and isinstance(order, Build | ReceiveGuest):
                # It is sent again, with the claims of its instance at that time.
                continue
            if isinstance(order, Build | StartGuest | ReceiveGuest) and order.instance.node is not None:
                session.node_of[order.instance.uuid] = order.instance.node
            self._outbox.begins(order.key[0])
            self._work.take(order, asked, poll.counter)

    async def _take_refused(self, refused: Mapping[str, str] | None) -> None:
        """Log and keep the nodes whose reports the cell does not take; `roost agent --check` shows them."""
        if refused is None:
            return
        if refused:
            text = "; ".join(f"node {node}: {why}" for node, why in sorted(refused.items()))
            self._troubles.tell(NOT_TAKEN, text, "error")
        else:
            self._troubles.over(NOT_TAKEN)
        if refused != self._sessions.kept.refused:
            await self._sessions.keep(refused=dict(refused))

    def _take_disabled(self, session: HostSession, disabled: bool | None) -> None:
        """Note whether an operator has disabled the host; a change goes to placement at once."""
        if disabled is None or disabled == session.is_disabled:
            return
        if session.is_disabled is not None or disabled:
            word = "disabled" if disabled else "enabled"
            self._context.log(f"an operator has {word} the host", {"host": self.host})
        session.is_disabled = disabled
        self._context.wake(f"{self._topic}/disabled")

    @property
    def _is_enabled(self) -> bool | None:
        """True if new instances may be placed on the host; None if the cell has not said yet."""
        if not self.enabled or self.held is not None:
            return False
        disabled = None if self._sessions.last is None else self._sessions.last.is_disabled
        return None if disabled is None else not disabled

    async def _keep_sending(self) -> None:
        """Send results at once, by polls beside the one that waits."""
        done = self._context.listen(self._topic)
        while True:
            await done.wait(self._times.report)
            if not self._outbox.is_pressing:
                continue
            try:
                await self._poll(wants_orders=False)
            except AgentProtocolError as error:
                # The results stay, and the next poll has them.
                self._troubles.tell(_NO_POLL, error)
            except StateUnusable as error:
                self._troubles.tell(NOT_KEPT, error, "error")

    async def _keep_token(self) -> None:
        """Request a new token at intervals. The old one is valid until the new one is used."""
        pause = self._times.token
        failures = 0
        while True:
            await self._context.sleep(pause)
            try:
                if (session := self.session) is not None:
                    token = await self._context.cell.ask(RenewToken(session))
                    await self._context.state.keep_token(token)
                failures, pause = 0, self._times.token
                self._troubles.over(_NO_TOKEN)
            except (AgentProtocolError, StateUnusable) as error:
                # A new token that could not be kept is never used, and the next one replaces it.
                failures += 1
                pause = self._times.pause(failures)
                self._troubles.tell(_NO_TOKEN, error)

    async def _keep_reporting(self) -> None:
        """Bring placement in line with the host at intervals."""
        failures = 0
        disabled = self._context.listen(f"{self._topic}/disabled", from_now=True)
        while True:
            session = self.session
            if session is not None:
                failed = await self.providers.report(session, self._reports.known, enabled=self._is_enabled)
                failures = failures + 1 if failed else 0
                # Providers that are not reported before the first poll come after it, unless it failed.
                if not self.reported and (self.polled or not failed.waiting):
                    self.reported = True
                    self._context.wake(start_topic(self.host))
            pause = self._times.pause(failures) if failures or session is None else self._times.report
            await disabled.wait(pause)


def start_topic(host: str) -> str:
    """Return the topic that is woken when a host's first poll or its first report of providers has ended."""
    return f"agent/{host}/start"


def _listed(guests: dict[str, int]) -> tuple[Guest, ...]:
    return tuple(Guest(instance, attempt) for instance, attempt in sorted(guests.items()))
