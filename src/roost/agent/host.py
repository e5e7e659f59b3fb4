"""The agent of one host as state machines: its session, its polls and the reports of its providers."""

from collections.abc import Mapping

import msgspec

from roost.agent.driver_calls import Guests, Recover
from roost.agent.errors import ReshapePostponed, StateUnusable
from roost.agent.health import node_reports, read_facts, read_nodes
from roost.agent.node_providers import Failures, NodeProviders
from roost.agent.outbox import Outbox
from roost.agent.persistent_state import KeepSession, KeepToken, KeptSession, LoadSession
from roost.agent.protocol.digest import digest_of
from roost.agent.protocol.errors import AgentProtocolError, CellTakenBack, LateMessage, SessionLost
from roost.agent.protocol.questions import Confirm, Opening, Poll, RenewToken
from roost.agent.protocol.types import Build, Guest, HistoryPosition, Opened, Polled, SessionKey
from roost.agent.sent_reports import SentReports
from roost.agent.troubles import Troubles
from roost.agent.workload import AgentWorkload
from roost.machine import Ask, Await, Draw, Increment, Log, Machine, Monotonic, Sleep, Start, Wake
from roost.model.instance import ACTIVE, DELETING
from roost.model.service_version import SERVICE_VERSION
from roost.process.metrics import catalogue as metrics

OTHER_DATABASE = "the cell's database is another one, or was restored from a backup"
TAKEN_BACK = "the cell's database was taken back to an earlier state"
EMPTY_LIST = "the cell's database knows no guest of this host, but there are some"
"""Reasons why an agent carries out no orders."""

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


class AgentTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The times of an agent, in seconds.

    ``poll``: the longest wait of a poll, if the cell allows it. ``health``: the least time between two
    reports of a node that changes. ``report``: between two reads of the host's resources by the driver.
    ``refresh``: between two reads of its providers, if the driver has nothing to change. ``start``: the
    limit for the start of a guest. ``retry``: the first pause after a failure; ``longest_retry``: the
    longest. ``gather``: the longest wait of the poll after orders for their results, so that a quick result
    needs no message of its own. ``keep``: between two writes of the position to the state. ``token``: the age
    at which a new token is requested; infinite: never.
    """

    poll: float = 20.0
    report: float = 60.0
    refresh: float = 300.0
    health: float = 10.0
    start: float = 600.0
    retry: float = 1.0
    longest_retry: float = 30.0
    gather: float = 0.3
    keep: float = 60.0
    token: float = float("inf")


class HostAgent:
    """The agent of one host. `run` is its machine; it asks ``cell``, ``driver`` and ``state``.

    The agent keeps nothing that matters in memory: the cell says which guests should be on the host, the
    driver which ones are. ``held``: the reason why it carries out no orders, None if it does. ``registered``:
    placement has had a whole report of the host's providers. ``polled`` and ``reported``: a first poll and a
    first report have ended, with success or not.
    """

    def __init__(self, host: str, *, times: AgentTimes | None = None, enabled: bool = True) -> None:
        self.host = host
        self.enabled = enabled
        self.held: str | None = None
        self.registered = self.polled = self.reported = False
        self._times = times or AgentTimes()
        self._topic = f"agent/{host}"
        self._troubles = Troubles(host)
        self._work = AgentWorkload(
            host, self._topic, self._confirmation, self._times.start, self._times.retry
        )
        self._outbox = Outbox(self._work, self._topic, self._times.gather)
        self._kept = KeptSession()
        self._session: SessionKey | None = None
        self._recovered = False
        self._wait = 0.0
        self._counter = self._answered = self._counted = 0
        self._sent: set[int] = set()
        self._reports = SentReports(self._times.health, self._times.refresh)
        self._node_of: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._wants_guests = self._reshaping = False
        self._kept_at = 0.0

    def run(self) -> Machine[None]:
        """Serve the host for ever. Raises `StateUnusable` if its state cannot be used at the start."""
        self._kept = yield from Ask("state", LoadSession()).do()
        self.held = self._kept.held
        yield from self._open()
        yield from Start(f"{self._topic}/providers", self._keep_reporting()).do()
        yield from Start(f"{self._topic}/results", self._keep_sending()).do()
        if self._times.token != float("inf"):
            yield from Start(f"{self._topic}/token", self._keep_token()).do()
        failures = 0
        while True:
            try:
                if self._session is None:
                    yield from self._open()
                yield from self._poll(self._wait)
                failures = 0
                yield from self._troubles.over(_NO_POLL)
                yield from self._has_begun()
                if self._reshaping:
                    # The endpoint sends orders that were left out with each answer at once.
                    yield from Sleep(self._times.retry).do()
                else:
                    yield from self._outbox.gather()
            except AgentProtocolError as error:
                failures += 1
                yield from self._troubles.tell(_NO_POLL, error)
                yield from self._has_begun()
                yield from Sleep(self._pause(failures)).do()
            except StateUnusable as error:
                # A disk that is full for a while ends no host: it goes on with what it has in memory.
                failures += 1
                yield from self._troubles.tell(_NOT_KEPT, error, "error")
                yield from Sleep(self._pause(failures)).do()

    def _has_begun(self) -> Machine[None]:
        if not self.polled:
            self.polled = True
            yield from Wake(start_topic(self.host)).do()

    # The session

    def _open(self) -> Machine[None]:
        """Open a session; repeat it until the cell grants one."""
        nonce = yield from Draw().do()
        previous = self._kept.nonces
        # Kept before it is used, so that the next start of this agent gets the session at once.
        yield from self._keep(nonces=(nonce, *previous)[:3])
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
                opened = yield from Ask("cell", opening).do()
                break
            except AgentProtocolError as error:
                failures += 1
                yield from self._troubles.tell(_NO_SESSION, error)
                yield from Sleep(self._pause(failures)).do()
        yield from self._troubles.over(_NO_SESSION)
        reason = None if self._kept.accepted else (yield from self._doubt(opened))
        if reason is not None and self.held is None:
            yield from self._hold(reason)
        position = msgspec.structs.replace(opened.position, epoch=opened.session.epoch, counter=0)
        if self.held is None:
            yield from self._keep(position=position, accepted=False)
        if not self._recovered:
            there = tuple(each for each in opened.expected if each.state in (ACTIVE, DELETING))
            yield from self._recover(Recover(there))
        self._counter = self._answered = self._counted = 0
        self._sent.clear()
        self._work.forget(None)
        self._reports.forget()
        self._node_of = {each.uuid: each.node for each in opened.expected if each.node is not None}
        self._wait = 0.0
        self._wants_guests = False
        self._is_disabled: bool | None = None
        self._session = opened.session
        values = {"host": self.host, "cell": opened.cell}
        yield from Log("the session of a host is open", values, "debug").do()

    def _recover(self, recovering: Recover) -> Machine[None]:
        """Have the driver take up the running guests of the host, however long it takes.

        Until then no order is taken, and the host counts as down.
        """
        failures = 0
        while not self._recovered:
            try:
                yield from Ask("driver", recovering).do()
                self._recovered = True
                yield from self._troubles.over(_NOT_RECOVERED)
            except Exception as error:
                failures += 1
                yield from self._troubles.tell(_NOT_RECOVERED, error, "error")
                yield from Sleep(self._pause(failures)).do()

    def _doubt(self, opened: Opened) -> Machine[str | None]:
        """Return why the cell's database cannot be trusted; None if it can."""
        before, now = self._kept.position, opened.position
        if before is not None:
            if (before.database, before.incarnation) != (now.database, now.incarnation):
                return OTHER_DATABASE
            if now < before:
                return TAKEN_BACK
        if not opened.expected and not opened.orders:
            guests = yield from self._guests()
            if guests:
                return EMPTY_LIST
        return None

    def _hold(self, reason: str) -> Machine[None]:
        self.held = reason
        yield from self._keep(held=reason)
        values = {"host": self.host, "reason": reason}
        yield from Log("the agent carries out no orders and waits for an operator", values, "error").do()

    def _accept(self) -> Machine[None]:
        """Begin a new session, as an operator has accepted the state of the cell's database."""
        values = {"host": self.host, "reason": self.held}
        yield from Log("an operator has accepted the state of the cell", values).do()
        self.held = None
        yield from self._keep(held=None, accepted=True, position=None)
        self._session = None

    @property
    def session(self) -> SessionKey | None:
        """The session of the host; None if it has none."""
        return self._session

    def _confirmation(self, instance: str, attempt: int) -> Confirm | None:
        """Return the question whether a build may start; None while no order may be carried out."""
        if self._session is None or self.held is not None:
            return None
        return Confirm(self._session, instance, attempt, self._counted)

    def _keep(self, **changes: object) -> Machine[None]:
        # Taken over only once it is written: the nonce of the session stays among the last ones.
        kept = msgspec.structs.replace(self._kept, **{"held": self.held, **changes})
        yield from Ask("state", KeepSession(kept)).do()
        self._kept = kept
        self._kept_at = yield from Monotonic().do()
        yield from self._troubles.over(_NOT_KEPT)

    # Polls

    def _poll(self, wait: float, *, wants_orders: bool = True) -> Machine[None]:
        """Send a heartbeat, and begin the orders in its answer. Raises `AgentProtocolError`."""
        session = self._session
        if session is None:
            return
        facts = yield from read_facts(self.host, self._troubles)
        asked = yield from Monotonic().do()
        # From here to the request nothing may change in between: results and digest belong together.
        guests = yield from self._guests()
        running = {} if guests is None else guests
        building = self._work.under_construction
        self._node_of = {i: node for i, node in self._node_of.items() if i in running or i in self._work.busy}
        reports = node_reports(
            self.host,
            facts,
            enabled=self.enabled and self.held is None,
            running=running,
            building=building,
            failed_builds=self._work.failed_builds,
            node_of=self._node_of,
            refused=self._refused,
        )
        settled = {uuid: attempt for uuid, attempt in running.items() if uuid not in self._work.busy}
        results, destroyed = self._outbox.contents(waits=wants_orders)
        self._counter += 1
        poll = Poll(
            session=session,
            counter=self._counter,
            # A new session begins once an operator has accepted the cell's state.
            counted=self._counted if self.held is None else 0,
            wait_seconds=wait,
            wants_orders=wants_orders,
            results=results,
            destroyed=destroyed,
            reports=self._reports.due(reports, asked),
            digest=None if guests is None else digest_of(settled.items()),
            guests=_listed(settled) if self._wants_guests and guests is not None else None,
            building=self._work.known(destroying=False),
            destroying=self._work.known(destroying=True),
            held=self.held,
            disabled=self._is_disabled,
            service_version=SERVICE_VERSION,
        )
        self._sent.add(poll.counter)
        if wants_orders:
            self._outbox.waits(poll)
        try:
            answer = yield from Ask("cell", poll).do()
        except SessionLost:
            if self._session == session:
                self._session = None
            raise
        except CellTakenBack:
            if self._session == session and self.held is None:
                yield from self._hold(TAKEN_BACK)
            return
        except LateMessage:
            return
        finally:
            self._sent.discard(poll.counter)
            if wants_orders:
                self._outbox.waits(None)
        yield from Increment(metrics.HEARTBEATS).do()
        if self._session == session:
            yield from self._take(poll, answer, asked)

    def _take(self, poll: Poll, answer: Polled, asked: float) -> Machine[None]:
        """Apply the answer to a poll."""
        if answer.accepted and self.held is not None and self.held == poll.held:
            return (yield from self._accept())
        self._work.acknowledged(poll.results, poll.destroyed, poll.counter)
        self._work.forget(min(self._sent, default=poll.counter))
        if answer.is_counted:
            self._counted = max(self._counted, poll.counter)
        if poll.counter > self._answered:
            self._answered = poll.counter
            if answer.wants_reports:
                self._reports.forget()
            else:
                self._reports.take(poll.reports, asked)
            yield from self._take_disabled(answer.disabled)
            self._wants_guests = answer.wants_guests
            self._wait = 0.0 if answer.wants_guests or answer.wants_reports else self._times.poll
        identity = (answer.position.database, answer.position.incarnation)
        known = self._kept.position
        if self.held is None and known is not None and identity != (known.database, known.incarnation):
            yield from self._hold(OTHER_DATABASE)
        if self.held is not None:
            return
        self._kept = msgspec.structs.replace(
            self._kept,
            position=HistoryPosition(*identity, epoch=poll.session.epoch, counter=self._counted),
        )
        yield from self._take_refused(answer.refused)
        if asked - self._kept_at >= self._times.keep:
            yield from self._keep()
        for order in answer.orders:
            if self._reshaping and isinstance(order, Build):
                # It is sent again, with the claims of its instance at that time.
                continue
            if isinstance(order, Build) and order.instance.node is not None:
                self._node_of[order.instance.uuid] = order.instance.node
            self._outbox.begins(order.key[0])
            yield from self._work.take(order, asked, poll.counter)

    def _take_refused(self, refused: Mapping[str, str] | None) -> Machine[None]:
        """Log and keep the nodes whose reports the cell does not take; `roost agent --check` shows them."""
        if refused is None:
            return
        if refused:
            text = "; ".join(f"node {node}: {why}" for node, why in sorted(refused.items()))
            yield from self._troubles.tell(NOT_TAKEN, text, "error")
        else:
            yield from self._troubles.over(NOT_TAKEN)
        if refused != self._kept.refused:
            yield from self._keep(refused=dict(refused))

    def _take_disabled(self, disabled: bool | None) -> Machine[None]:
        """Note whether an operator has disabled the host; a change goes to placement at once."""
        if disabled is None or disabled == self._is_disabled:
            return
        if self._is_disabled is not None or disabled:
            word = "disabled" if disabled else "enabled"
            yield from Log(f"an operator has {word} the host", {"host": self.host}).do()
        self._is_disabled = disabled
        yield from Wake(f"{self._topic}/disabled").do()

    @property
    def _is_enabled(self) -> bool | None:
        """True if new instances may be placed on the host; None if the cell has not said yet."""
        if not self.enabled or self.held is not None:
            return False
        return None if self._is_disabled is None else not self._is_disabled

    def _keep_sending(self) -> Machine[None]:
        """Send results at once, by polls beside the one that waits."""
        while True:
            yield from Await(self._topic, self._times.report).do()
            if not self._outbox.is_pressing:
                continue
            try:
                yield from self._poll(0.0, wants_orders=False)
            except AgentProtocolError as error:
                # The results stay, and the next poll has them.
                yield from self._troubles.tell(_NO_POLL, error)
            except StateUnusable as error:
                yield from self._troubles.tell(_NOT_KEPT, error, "error")

    def _guests(self) -> Machine[dict[str, int] | None]:
        """Return the guests that run on the host; None if the driver cannot list them."""
        try:
            guests = yield from Ask("driver", Guests()).do()
        except Exception as error:
            yield from self._troubles.tell(_NO_GUESTS, error, "error")
            return None
        yield from self._troubles.over(_NO_GUESTS)
        return guests

    def _keep_token(self) -> Machine[None]:
        """Request a new token at intervals. The old one is valid until the new one is used."""
        pause = self._times.token
        failures = 0
        while True:
            yield from Sleep(pause).do()
            try:
                if (session := self._session) is not None:
                    token = yield from Ask("cell", RenewToken(session)).do()
                    yield from Ask("state", KeepToken(token)).do()
                failures, pause = 0, self._times.token
                yield from self._troubles.over(_NO_TOKEN)
            except (AgentProtocolError, StateUnusable) as error:
                # A new token that could not be kept is never used, and the next one replaces it.
                failures += 1
                pause = self._pause(failures)
                yield from self._troubles.tell(_NO_TOKEN, error)

    # Providers

    def _keep_reporting(self) -> Machine[None]:
        """Bring placement in line with the host at intervals."""
        providers = NodeProviders(self.host, self._times.refresh, self._may_reshape)
        failures = 0
        # The first wait of a machine for a topic ends at once.
        yield from Await(f"{self._topic}/disabled", 0.0).do()
        while True:
            session = self._session
            if session is not None:
                failed = yield from self._report(session, providers)
                failures = failures + 1 if failed else 0
                # Providers that are not reported before the first poll come after it, unless it failed.
                if not self.reported and (self.polled or not failed.waiting):
                    self.reported = True
                    yield from Wake(start_topic(self.host)).do()
            pause = self._pause(failures) if failures or session is None else self._times.report
            yield from Await(f"{self._topic}/disabled", pause).do()

    def _report(self, session: SessionKey, providers: NodeProviders) -> Machine[Failures]:
        """Report the providers of all nodes. Returns the failures, after which it is repeated soon."""
        try:
            nodes = yield from read_nodes(self.host)
        except Exception as error:
            yield from self._troubles.tell(_NO_REPORT, error, "error")
            return Failures([], error)
        failures = yield from providers.report(session, nodes, self._reports.known, enabled=self._is_enabled)
        if failures.error is None:
            self._refused = failures.of_nodes
        self._reshaping = isinstance(failures.error, ReshapePostponed)
        if failures.error is not None:
            yield from self._troubles.tell(_NO_REPORT, failures.error, "error")
            return failures
        yield from self._troubles.over(_NO_REPORT)
        if failures.refusals:
            yield from self._troubles.tell(_REFUSED, "; ".join(failures.refusals[:SHOWN]), "error")
        elif not failures.waiting:
            self.registered = True
            yield from self._troubles.over(_REFUSED)
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
