"""The endpoint of a cell's agents: answers their questions from the cell's database."""

from typing import Any, NamedTuple

import msgspec

from roost.agent.protocol.errors import EndpointUnavailable, LateMessage, MessageRefused, SessionTaken
from roost.agent.protocol.questions import (
    Call,
    Closing,
    Confirm,
    Opening,
    Poll,
    ReadClaims,
    ReadTree,
    RenewToken,
    Reshape,
    WriteProviders,
)
from roost.agent.protocol.types import (
    SIZE,
    Destroy,
    HistoryPosition,
    Opened,
    Order,
    Polled,
    SessionKey,
    digest_of,
)
from roost.conductor.agent_endpoint.endpoint_context import EndpointContext
from roost.conductor.agent_endpoint.host_orders import HostOrders, known_orders
from roost.conductor.agent_endpoint.name_owners import NodeNamesJudge
from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.agent_endpoint.refusals import NewNodesJudge, ReportRefusals
from roost.conductor.agent_endpoint.sessions import (
    OpenSession,
    SessionGone,
    TakenBack,
    close_session,
    hold_session,
    refusal_of,
)
from roost.conductor.agent_endpoint.transactions import (
    ConfirmBuild,
    NotStored,
    PollLate,
    PollStored,
    StorePoll,
    renew_host_token,
)
from roost.conductor.agent_endpoint.tree_reshape import settle_cut_off
from roost.conductor.agent_endpoint.trees import answer_of_tree
from roost.model.instance import AttemptKey, DestroyOrder
from roost.model.token import host_token_of, token_digest
from roost.process.context import Routine, lasting
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.host_work import SESSION, HostWork, orders_topic
from roost.state.leases import LeaseTimes, watch_leases
from roost.storage import DatabaseIdentity, StorageError, read_identity

SESSION_TIMES = LeaseTimes(look=5.0, lease=60.0, forget=float("inf"))
"""The times of hosts' sessions: one is free for another agent when it has stood still for 60 seconds.

Its row is never removed: by its epochs an agent detects that the database was taken back.
"""


_NOT_ITS_OWN = "placement has a provider of this uuid that does not carry the name of the host"
_ANOTHERS = "the node is that of another host"


CONFIRM_SECONDS = 5.0
"""Seconds for which a confirmation waits for the source of a move, at most."""


class EndpointTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The times of an endpoint, in seconds.

    ``poll``: the longest wait of a poll, which is a quarter of ``build`` at most. ``signs``: the time that an
    empty poll waits to be stored, so that one transaction stores those of many hosts. ``look``: the interval
    of looking for work that other processes have written while they announce it, and ``alone`` while they do
    not, as nothing may reach this process. ``build``: the time within which a build must be
    confirmed. ``guests``: the interval at which a host lists its guests even if nothing has changed there:
    the cell's rows may have.
    """

    poll: float = 20.0
    signs: float = 1.0
    look: float = 1.0
    alone: float = 0.2
    build: float = 600.0
    guests: float = 300.0


class _Seen(NamedTuple):
    """The last poll of a host that was stored, and when a sign of life was last stored."""

    session: SessionKey
    at: float
    counter: int


class _Listed(NamedTuple):
    """The last list of guests of a host: the epoch of its session, the digest of the list, and its time."""

    epoch: int
    digest: int
    at: float


class AgentEndpoint:
    """Answers questions of agents.

    Its state in memory only saves work and may be lost: digests that were compared, and polls that wait.
    """

    def __init__(
        self,
        context: EndpointContext,
        cell: str,
        times: EndpointTimes | None = None,
        limits: OfferLimits = NO_LIMITS,
    ) -> None:
        self._context = context
        self._limits = limits
        self.cell = cell
        self._database = f"cell/{cell}"
        times = times or EndpointTimes()
        # A build has its time from the moment when the agent sent the poll that brought it.
        self._times = msgspec.structs.replace(times, poll=min(times.poll, times.build / 4))
        self._new_nodes = NewNodesJudge(context, self._database)
        self._names = NodeNamesJudge(context, context.names, cell, self._database)
        self._refusals = ReportRefusals(context, self._database)
        self._orders = HostOrders(context, cell, (self._times.look, self._times.alone), self._times.build)
        self._compared: dict[str, _Listed] = {}
        self._seen: dict[str, _Seen] = {}
        self._identity: DatabaseIdentity | None = None

    def routines(self) -> list[Routine[None]]:
        """Return the coroutines that a process runs besides the answers."""
        context = self._context
        return [
            lasting(context, "look_for_work", self._orders.look_for_work),
            lasting(context, "settle_reshapes", lambda: settle_cut_off(context, self._database, self.cell)),
            lasting(
                context,
                "watch_leases",
                lambda: watch_leases(context, self._database, SESSION, SESSION_TIMES),
            ),
        ]

    async def answer(self, question: Call[Any]) -> Any:
        """Answer one question. Raises `AgentProtocolError`."""
        try:
            return await self._answer(question)
        except StorageError as error:
            # The database may be another one when it is back.
            self._identity = None
            # Hosts are not told the address of the database.
            raise EndpointUnavailable(f"the database of cell {self.cell} does not answer") from error

    async def _answer(self, question: Call[Any]) -> Any:
        match question:
            case Poll():
                return await self._poll(question)
            case Opening():
                return await self._open(question)
            case Confirm():
                return await self._confirm(question)
            case ReadTree() | ReadClaims() | WriteProviders() | Reshape():
                return await answer_of_tree(self._context, self._database, question)
            case RenewToken(session):
                return await self._renew_token(session)
            case Closing(session):
                return await self._context.write(self._database, close_session(session))
        raise MessageRefused(f"the endpoint does not answer {type(question).__name__}")

    async def _confirm(self, asked: Confirm) -> bool | None:
        """Confirm a build. A target waits here for its source, so that the instance is away for a moment."""
        stopped = self._context.listen(self._stopped_topic(asked.instance), from_now=True)
        until = self._context.monotonic() + CONFIRM_SECONDS
        key = AttemptKey(asked.instance, asked.attempt)
        while True:
            work = ConfirmBuild(asked.session, key, self._context.clock(), asked.counted)
            wanted = await self._context.write(self._database, work)
            left = until - self._context.monotonic()
            if wanted is not None or not asked.waits or left <= 0:
                break
            # The source may be served by another process, which does not wake this one.
            await stopped.wait(min(left, self._times.look))
        if isinstance(wanted, SessionGone | TakenBack):
            raise refusal_of(asked.session, wanted)
        if wanted is False:
            # Without room on its node the attempt has failed.
            self._context.wake(work_topic(self.cell))
        if wanted is None and not asked.waits:
            raise EndpointUnavailable(f"the source of the move of {asked.instance} has not stopped yet")
        return wanted

    def _stopped_topic(self, instance: str) -> str:
        return f"cell/{self.cell}/stopped/{instance}"

    async def _renew_token(self, session: SessionKey) -> str:
        token = host_token_of(self._context.draw())
        at = self._context.clock()
        work = renew_host_token(session, token_digest(token), at)
        if not await self._context.write(self._database, work):
            raise refusal_of(session)
        return token

    async def _open(self, opening: Opening) -> Opened:
        at = self._context.clock()
        work = OpenSession(
            host=opening.host,
            nonce=opening.nonce,
            previous=opening.previous,
            service_version=opening.service_version,
            at=at,
            is_held=opening.held is not None,
            fence=opening.fence,
        )
        opened = await self._context.write(self._database, work)
        if opened is None:
            raise SessionTaken(
                f"another agent has the session of host {opening.host}; it is free when that agent has been "
                f"silent for {SESSION_TIMES.lease:g} seconds"
            )
        self._compared.pop(opening.host, None)
        self._identity = DatabaseIdentity(opened.before.database, opened.before.incarnation)
        session = SessionKey(opening.host, opening.nonce, opened.epoch)
        self._refusals.opened(session)
        return Opened(
            session=session,
            cell=self.cell,
            position=opened.before,
            expected=opened.expected,
            orders=tuple(Destroy(each.instance, each.attempt) for each in opened.orders),
            poll_seconds=self._times.poll,
        )

    # Polls

    async def _poll(self, poll: Poll) -> Polled:
        host = poll.session.host
        began = self._context.monotonic()
        reports = poll.reports
        new = await self._new_nodes.judge(poll.session, reports)
        left_out = new.others | new.unsure
        kept = tuple(each for each in poll.reports if each.node not in left_out)
        names = await self._names.judge(poll.session, kept)
        excessive = {e.node: why for e in kept if (why := self._limits.excess_of_report(e)) is not None}
        if excessive:
            values = {"host": host, "cell": self.cell, "nodes": excessive}
            self._context.log("a host reports more than agents may offer", values, "error")
        left_out |= excessive.keys() | names.refused.keys() | names.unsure
        kept = tuple(each for each in kept if each.node not in left_out)
        poll = msgspec.structs.replace(poll, reports=kept)
        stored = await self._stored(poll, began)
        if isinstance(stored, PollLate):
            raise LateMessage(f"a later poll of host {host} has arrived before poll {poll.counter}")
        if not isinstance(stored, PollStored):
            raise refusal_of(poll.session, stored)
        for each in poll.powered:
            self._context.wake(self._stopped_topic(each.instance))
        self._tell(poll, stored)
        refused = dict.fromkeys(new.others, _NOT_ITS_OWN) | dict.fromkeys(stored.refused, _ANOTHERS)
        refused |= {**excessive, **names.refused}
        told = await self._refusals.note(poll.session, reports, refused)
        wants_guests = self._wants_guests(poll, began)
        wants_reports = stored.is_reported is False and not (stored.refused or left_out)
        known = known_orders(poll)
        left = min(poll.wait_seconds, self._times.poll)
        orders: tuple[Order, ...] = ()
        accepted = False
        if poll.held is not None:
            at = self._context.clock()
            noted = await self._context.write(self._database, hold_session(poll.session, poll.held, at))
            if noted is None:
                raise refusal_of(poll.session)
            accepted = noted
        else:
            orders = await self._orders.unknown(stored.work, known, poll.service_version)
        is_wrong = poll.disabled is not None and stored.is_disabled not in (None, poll.disabled)
        if not (orders or wants_guests or wants_reports or accepted or is_wrong) and left > 0:
            if poll.held is None:
                orders = await self._orders.wait(poll, known, began + left)
            else:
                await self._context.sleep(left)
        position = await self._position(poll.session.epoch, stored.before)
        return Polled(
            position=position,
            is_counted=stored.is_counted,
            orders=orders,
            wants_guests=wants_guests,
            # After the wait: placement or the API database is away.
            wants_reports=wants_reports or bool(new.unsure or names.unsure),
            accepted=accepted,
            disabled=stored.is_disabled,
            refused=None if told is None else dict(told),
        )

    async def _stored(self, poll: Poll, now: float) -> PollStored | NotStored:
        """Store a poll. An empty poll soon after another is not written."""
        host = poll.session.host
        brings = poll.results or poll.destroyed or poll.powered or poll.reports or poll.guests is not None
        brings = brings or bool(poll.fenced)
        seen = self._seen.get(host)
        is_sign = seen is None or seen.session != poll.session or now - seen.at >= self._times.poll / 4
        if seen is not None and not (brings or is_sign):
            # The one look for all hosts finds the work of this one, once this poll waits.
            self._context.wake(orders_topic(self.cell))
            return PollStored(seen.counter, HostWork([], []), is_counted=False)
        if seen is not None and not brings and poll.wait_seconds > 0:
            await self._gather(now)
        at = self._context.clock()
        work = StorePoll(
            session=poll.session,
            counter=poll.counter,
            counted=poll.counted,
            results=tuple(each for each in poll.results if each.host == host),
            destroyed=tuple(DestroyOrder(each.instance, each.attempt, host) for each in poll.destroyed),
            powered=poll.powered,
            reports=tuple(msgspec.structs.replace(each, host=host, cell=self.cell) for each in poll.reports),
            guests=None if poll.guests is None else {each.instance: each.attempt for each in poll.guests},
            fenced={each.instance: each.attempt for each in poll.fenced},
            at=at,
            cell=self.cell,
            wants_orders=poll.wants_orders,
            is_sign=is_sign,
        )
        stored = await self._context.write(self._database, work)
        if isinstance(stored, PollStored):
            at_last = now if is_sign or seen is None else seen.at
            self._seen[host] = _Seen(poll.session, at_last, poll.counter)
        return stored

    async def _gather(self, now: float) -> None:
        """Wait until the signs of life of all hosts are stored, or until hosts have work, which this poll
        brings."""
        left = self._times.signs - now % self._times.signs
        await self._context.listen(orders_topic(self.cell), from_now=True).wait(left)

    async def _position(self, epoch: int, counter: int) -> HistoryPosition:
        if self._identity is None:
            self._identity = await self._context.read(self._database, read_identity)
        return HistoryPosition(self._identity.uuid, self._identity.incarnation, epoch, counter)

    def _wants_guests(self, poll: Poll, now: float) -> bool:
        """Return whether the guests of a host are to be compared.

        They are if they have changed in another way than its results tell, or were listed long ago.
        """
        host, epoch = poll.session.host, poll.session.epoch
        if poll.digest is None:
            return False
        listed = self._compared.get(host)
        is_old = listed is None or listed.epoch != epoch or now - listed.at >= self._times.guests
        if poll.guests is not None:
            self._compared[host] = _Listed(epoch, poll.digest, now)
        elif listed is None or is_old:
            return True
        else:
            came = [(each.instance, each.attempt) for each in poll.results if each.failure is None]
            gone = [(each.instance, each.guest) for each in poll.destroyed if each.guest is not None]
            switched = [each for each in poll.powered if each.failure is None]
            came += [(each.instance, each.attempt) for each in switched if each.runs]
            gone += [(each.instance, each.attempt) for each in switched if not each.runs]
            expected = (listed.digest + digest_of(came) - digest_of(gone)) % SIZE
            if poll.digest != expected:
                return True
            self._compared[host] = listed._replace(digest=poll.digest)
        return False

    def _tell(self, poll: Poll, stored: PollStored) -> None:
        if stored.ended:
            self._context.record((), stored.ended)
        host = {"host": poll.session.host, "cell": self.cell}
        if stored.refused:
            values = {**host, "nodes": sorted(stored.refused)}
            self._context.log("a host reports nodes that are another host's", values, "error")
        if stored.restarted:
            values = {**host, "instances": stored.restarted}
            self._context.log(
                "guests that a host has stopped by its fence are started again", values, "warning"
            )
        compared = stored.compared
        if compared is None:
            return
        for event, uuids in (
            ("guests have vanished from a host", compared.lost),
            ("guests that had vanished from a host are there again", compared.found),
            ("guests that are to be stopped run; they are stopped again", compared.awake),
            ("a host has guests that its cell does not know; they are left alone", compared.unknown),
        ):
            if uuids:
                self._context.log(event, {**host, "instances": sorted(uuids)}, "warning")
