"""The agent of one host: its session, its polls and the reports of its providers."""

from collections.abc import Mapping

import msgspec

from roost.agent.agent_context import AgentContext
from roost.agent.errors import ReshapePostponed, StateUnusable
from roost.agent.health import node_reports, read_facts, read_nodes
from roost.agent.host_session import (
    EMPTY_LIST,
    OTHER_DATABASE,
    TAKEN_BACK,
    TRANSITIONS,
    HostSession,
    SessionEvent,
    SessionState,
    why_doubted,
)
from roost.agent.node_providers import Failures, NodeProviders
from roost.agent.options import AgentTimes
from roost.agent.outbox import Outbox
from roost.agent.persistent_state import KeptSession
from roost.agent.protocol.digest import digest_of
from roost.agent.protocol.errors import AgentProtocolError, CellTakenBack, LateMessage, SessionLost
from roost.agent.protocol.questions import Confirm, Opening, Poll, RenewToken
from roost.agent.protocol.types import Build, Guest, HistoryPosition, Opened, Polled, SessionKey
from roost.agent.sent_reports import SentReports
from roost.agent.troubles import Troubles
from roost.agent.workload import AgentWorkload
from roost.model.instance import ACTIVE, DELETING, Instance
from roost.model.service_version import SERVICE_VERSION
from roost.process.metrics import catalogue as metrics

_NO_SESSION = "no session can be opened"
_NO_POLL = "the cell does not take a poll"
NOT_TAKEN = "the cell does not take the reports of nodes"
_NOT_KEPT = "the state of a host cannot be kept"
_NOT_RECOVERED = "the driver cannot take up the guests of a host"
_NO_GUESTS = "the driver cannot list its guests"
_NO_TOKEN = "the token of a host is renewed later"
_NO_REPORT = "a host cannot report to placement"
_REFUSED = "placement refuses a part of a host's report"


SHOWN = 10
"""Refusals that one log line names, at most."""


class HostAgent:
    """The agent of one host. It asks ``cell``, ``driver`` and ``state``.

    The agent keeps nothing that matters in memory: the cell says which guests should be on the host, the
    driver which ones are. ``state`` changes by the table of `roost.agent.host_session`. ``registered``:
    placement has had a whole report of the host's providers. ``polled`` and ``reported``: a first poll and a
    first report have ended, with success or not.
    """

    def __init__(
        self, context: AgentContext, host: str, *, times: AgentTimes | None = None, enabled: bool = True
    ) -> None:
        self._context = context
        self.host = host
        self.enabled = enabled
        self.state = SessionState.CLOSED
        self.registered = self.polled = self.reported = False
        self._times = times or AgentTimes()
        self._topic = f"agent/{host}"
        self._troubles = Troubles(context, host)
        self._work = AgentWorkload(
            context, host, self._topic, self._confirmation, self._times.start, self._times.retry
        )
        self._outbox = Outbox(context, self._work, self._topic, self._times.gather)
        self._kept = KeptSession()
        self._session: HostSession | None = None
        """The last session: it is open in the states that have one."""
        self._reason: str | None = None
        self._reports = SentReports(self._times.health, self._times.refresh)
        self._refused: dict[str, str] = {}
        self._recovered = self._reshaping = False
        self._kept_at = 0.0

    async def run(self) -> None:
        """Serve the host for ever. Raises `StateUnusable` if its state cannot be used at the start."""
        self._kept = await self._context.state.load_session()
        if self._kept.held is not None:
            self._doubt(self._kept.held)
        await self._open()
        self._context.start(f"{self._topic}/providers", self._keep_reporting())
        self._context.start(f"{self._topic}/results", self._keep_sending())
        if self._times.token != float("inf"):
            self._context.start(f"{self._topic}/token", self._keep_token())
        failures = 0
        while True:
            try:
                if not self.state.has_session:
                    await self._open()
                await self._poll()
                failures = 0
                self._troubles.over(_NO_POLL)
                self._has_begun()
                if self._reshaping:
                    # The endpoint sends orders that were left out with each answer at once.
                    await self._context.sleep(self._times.retry)
                else:
                    await self._outbox.gather()
            except AgentProtocolError as error:
                failures += 1
                self._troubles.tell(_NO_POLL, error)
                self._has_begun()
                await self._context.sleep(self._pause(failures))
            except StateUnusable as error:
                # A disk that is full for a while ends no host: it goes on with what it has in memory.
                failures += 1
                self._troubles.tell(_NOT_KEPT, error, "error")
                await self._context.sleep(self._pause(failures))

    def _has_begun(self) -> None:
        if not self.polled:
            self.polled = True
            self._context.wake(start_topic(self.host))

    # The session

    @property
    def session(self) -> SessionKey | None:
        """The session of the host; None if it has none."""
        return None if (session := self._open_session) is None else session.key

    @property
    def held(self) -> str | None:
        """The reason why the agent carries out no orders; None if it does."""
        return self._reason if self.state.is_held else None

    @property
    def _open_session(self) -> HostSession | None:
        return self._session if self.state.has_session else None

    def _on(self, event: SessionEvent) -> None:
        self.state = TRANSITIONS[self.state][event]

    def _doubt(self, reason: str) -> None:
        self._reason = reason
        self._on(SessionEvent.DOUBTED)

    async def _open(self) -> None:
        """Open a session; repeat it until the cell grants one."""
        nonce = self._context.draw()
        previous = self._kept.nonces
        # Kept before it is used, so that the next start of this agent gets the session at once.
        await self._keep(nonces=(nonce, *previous)[:3])
        opening = Opening(
            host=self.host,
            nonce=nonce,
            previous=previous,
            service_version=SERVICE_VERSION,
            held=self.held,
        )
        failures = 0
        while True:
            try:
                opened = await self._context.cell.ask(opening)
                break
            except AgentProtocolError as error:
                failures += 1
                self._troubles.tell(_NO_SESSION, error)
                await self._context.sleep(self._pause(failures))
        self._troubles.over(_NO_SESSION)
        reason = None if self._kept.accepted else await self._why_doubted(opened)
        if reason is not None and self.held is None:
            await self._hold(reason)
        position = msgspec.structs.replace(opened.position, epoch=opened.session.epoch, counter=0)
        if self.held is None:
            await self._keep(position=position, accepted=False)
        if not self._recovered:
            there = tuple(each for each in opened.expected if each.state in (ACTIVE, DELETING))
            await self._recover(there)
        self._work.forget(None)
        self._reports.forget()
        nodes = {each.uuid: each.node for each in opened.expected if each.node is not None}
        self._session = HostSession(opened.session, nodes)
        self._on(SessionEvent.OPENED)
        values = {"host": self.host, "cell": opened.cell}
        self._context.log("the session of a host is open", values, "debug")

    async def _recover(self, there: tuple[Instance, ...]) -> None:
        """Have the driver take up the running guests of the host, however long it takes.

        Until then no order is taken, and the host counts as down.
        """
        failures = 0
        while not self._recovered:
            try:
                await self._context.driver.recover(there)
                self._recovered = True
                self._troubles.over(_NOT_RECOVERED)
            except Exception as error:
                failures += 1
                self._troubles.tell(_NOT_RECOVERED, error, "error")
                await self._context.sleep(self._pause(failures))

    async def _why_doubted(self, opened: Opened) -> str | None:
        """Return why the cell's database cannot be trusted; None if it can."""
        reason = why_doubted(self._kept.position, opened.position)
        if reason is not None:
            return reason
        if not opened.expected and not opened.orders:
            guests = await self._guests()
            if guests:
                return EMPTY_LIST
        return None

    async def _hold(self, reason: str) -> None:
        self._doubt(reason)
        await self._keep(held=reason)
        values = {"host": self.host, "reason": reason}
        self._context.log("the agent carries out no orders and waits for an operator", values, "error")

    async def _accept(self) -> None:
        """Begin a new session, as an operator has accepted the state of the cell's database."""
        values = {"host": self.host, "reason": self.held}
        self._context.log("an operator has accepted the state of the cell", values)
        self._on(SessionEvent.ACCEPTED)
        await self._keep(held=None, accepted=True, position=None)
        self._on(SessionEvent.ENDED)

    def _confirmation(self, instance: str, attempt: int) -> Confirm | None:
        """Return the question whether a build may start; None while no order may be carried out."""
        if self.state is not SessionState.SERVING or self._session is None:
            return None
        return Confirm(self._session.key, instance, attempt, self._session.counted)

    async def _keep(self, **changes: object) -> None:
        # Taken over only once it is written: the nonce of the session stays among the last ones.
        kept = msgspec.structs.replace(self._kept, **{"held": self.held, **changes})
        await self._context.state.keep_session(kept)
        self._kept = kept
        self._kept_at = self._context.monotonic()
        self._troubles.over(_NOT_KEPT)

    # Polls

    async def _poll(self, *, wants_orders: bool = True) -> None:
        """Send a heartbeat, and begin the orders in its answer. Raises `AgentProtocolError`."""
        session = self._open_session
        if session is None:
            return
        wait = session.wait if wants_orders else 0.0
        facts = await read_facts(self._context, self.host, self._troubles)
        asked = self._context.monotonic()
        # From here to the request nothing may change in between: results and digest belong together.
        guests = await self._guests()
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
            refused=self._refused,
        )
        settled = {uuid: attempt for uuid, attempt in running.items() if uuid not in self._work.busy}
        results, destroyed = self._outbox.contents(waits=wants_orders)
        session.counter += 1
        poll = Poll(
            session=session.key,
            counter=session.counter,
            # A new session begins once an operator has accepted the cell's state.
            counted=session.counted if self.held is None else 0,
            wait_seconds=wait,
            wants_orders=wants_orders,
            results=results,
            destroyed=destroyed,
            reports=self._reports.due(reports, asked),
            digest=None if guests is None else digest_of(settled.items()),
            guests=_listed(settled) if session.wants_guests and guests is not None else None,
            building=self._work.known(destroying=False),
            destroying=self._work.known(destroying=True),
            held=self.held,
            disabled=session.is_disabled,
            service_version=SERVICE_VERSION,
        )
        session.sent.add(poll.counter)
        if wants_orders:
            self._outbox.waits(poll)
        try:
            answer = await self._context.cell.ask(poll)
        except SessionLost:
            if self._open_session is session:
                self._on(SessionEvent.ENDED)
            raise
        except CellTakenBack:
            if self._open_session is session and not self.state.is_held:
                await self._hold(TAKEN_BACK)
            return
        except LateMessage:
            return
        finally:
            session.sent.discard(poll.counter)
            if wants_orders:
                self._outbox.waits(None)
        metrics.HEARTBEATS.inc()
        if self._open_session is session:
            await self._take(session, poll, answer, asked)

    async def _take(self, session: HostSession, poll: Poll, answer: Polled, asked: float) -> None:
        """Apply the answer to a poll."""
        if answer.accepted and self.held is not None and self.held == poll.held:
            await self._accept()
            return
        self._work.acknowledged(poll.results, poll.destroyed, poll.counter)
        self._work.forget(min(session.sent, default=poll.counter))
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
        identity = (answer.position.database, answer.position.incarnation)
        known = self._kept.position
        if self.held is None and known is not None and identity != (known.database, known.incarnation):
            await self._hold(OTHER_DATABASE)
        if self.held is not None:
            return
        self._kept = msgspec.structs.replace(
            self._kept,
            position=HistoryPosition(*identity, epoch=poll.session.epoch, counter=session.counted),
        )
        await self._take_refused(answer.refused)
        if asked - self._kept_at >= self._times.keep:
            await self._keep()
        for order in answer.orders:
            if self._reshaping and isinstance(order, Build):
                # It is sent again, with the claims of its instance at that time.
                continue
            if isinstance(order, Build) and order.instance.node is not None:
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
        if refused != self._kept.refused:
            await self._keep(refused=dict(refused))

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
        if not self.enabled or self.state.is_held:
            return False
        disabled = None if self._session is None else self._session.is_disabled
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
                self._troubles.tell(_NOT_KEPT, error, "error")

    async def _guests(self) -> dict[str, int] | None:
        """Return the guests that run on the host; None if the driver cannot list them."""
        try:
            guests = await self._context.driver.guests()
        except Exception as error:
            self._troubles.tell(_NO_GUESTS, error, "error")
            return None
        self._troubles.over(_NO_GUESTS)
        return guests

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
                pause = self._pause(failures)
                self._troubles.tell(_NO_TOKEN, error)

    # Providers

    async def _keep_reporting(self) -> None:
        """Bring placement in line with the host at intervals."""
        providers = NodeProviders(self._context, self.host, self._times.refresh, self._may_reshape)
        failures = 0
        disabled = self._context.listen(f"{self._topic}/disabled", from_now=True)
        while True:
            session = self.session
            if session is not None:
                failed = await self._report(session, providers)
                failures = failures + 1 if failed else 0
                # Providers that are not reported before the first poll come after it, unless it failed.
                if not self.reported and (self.polled or not failed.waiting):
                    self.reported = True
                    self._context.wake(start_topic(self.host))
            pause = self._pause(failures) if failures or session is None else self._times.report
            await disabled.wait(pause)

    async def _report(self, session: SessionKey, providers: NodeProviders) -> Failures:
        """Report the providers of all nodes. Returns the failures, after which it is repeated soon."""
        try:
            nodes = await read_nodes(self._context, self.host)
        except Exception as error:
            self._troubles.tell(_NO_REPORT, error, "error")
            return Failures([], error)
        failures = await providers.report(session, nodes, self._reports.known, enabled=self._is_enabled)
        if failures.error is None:
            self._refused = failures.of_nodes
        self._reshaping = isinstance(failures.error, ReshapePostponed)
        if failures.error is not None:
            self._troubles.tell(_NO_REPORT, failures.error, "error")
            return failures
        self._troubles.over(_NO_REPORT)
        if failures.refusals:
            self._troubles.tell(_REFUSED, "; ".join(failures.refusals[:SHOWN]), "error")
        elif not failures.waiting:
            self.registered = True
            self._troubles.over(_REFUSED)
        return failures

    def _may_reshape(self) -> bool:
        """Begin no builds until the report has ended, as their claims may move to other providers.

        Returns whether no build is under way.
        """
        self._reshaping = True
        return not self._work.under_construction

    def _pause(self, failures: int) -> float:
        doubled: float = self._times.retry * 2 ** min(max(failures, 1) - 1, 10)
        return min(doubled, self._times.longest_retry)


def start_topic(host: str) -> str:
    """Return the topic that is woken when a host's first poll or its first report of providers has ended."""
    return f"agent/{host}/start"


def _listed(guests: dict[str, int]) -> tuple[Guest, ...]:
    return tuple(Guest(instance, attempt) for instance, attempt in sorted(guests.items()))
