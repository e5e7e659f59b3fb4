"""The past that pages read: hosts and consumers as of a moment."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from sqlalchemy.engine import Connection

from roost.dashboard.past.fleet_columns import PastColumns, PresentProviders, columns_at, present_providers
from roost.dashboard.past.index_block import block_of
from roost.dashboard.past.index_entries import EntryCollector
from roost.dashboard.past.index_keeper import IndexKeeper
from roost.dashboard.past.index_view import IndexView
from roost.dashboard.past.past_moments import (
    PastMissing,
    PastMoment,
    ShownMoment,
    iso,
    kept_commits,
    moment_of,
    not_kept,
    number_or_time,
)
from roost.dashboard.past.past_nodes import NodeKeys, PastNodes
from roost.dashboard.past.row_keys import RowKeys
from roost.dashboard.past.samples import SampleStore
from roost.dashboard.past.state_log import StateLog
from roost.dashboard.past.things_past import ConsumerAsOf, HostAsOf, consumer_at, host_at
from roost.dashboard.past.use_history import UseHistory, use_history
from roost.fleet.utilisation import class_uses
from roost.ledger import Ledger
from roost.ledger.feed import commits_after
from roost.scheduler.nodes import NodeTable

T = TypeVar("T")

MOST_BEHIND: Final = 2_000
"""Commits that a request reads itself because the index does not have them yet."""

MOST_COLUMNS: Final = 4
"""Versions whose amounts are kept: a slider comes back to them."""

NO_LEDGER: Final = "there is no past: placement is another service, which keeps its commits for itself"
NO_INDEX: Final = "there is no index of the past: set [dashboard] directory"


class PastReads:
    """Reads the past.

    ``ledger`` and ``keeper``: None if the process has none. ``table``: the nodes as they are now. ``log``: of
    the states of hosts, None if they are not kept. ``samples``: those that a `Sampler` takes.
    """

    def __init__(
        self,
        ledger: Ledger | None,
        keeper: IndexKeeper | None,
        table: NodeTable | None = None,
        log: StateLog | None = None,
        samples: SampleStore | None = None,
    ) -> None:
        self.samples = SampleStore(None) if samples is None else samples
        self.log = log
        self._ledger = ledger
        self._keeper = keeper
        self._node_keys = NodeKeys(NodeTable() if table is None else table)
        self._keys = RowKeys()
        self._columns: OrderedDict[int, PastColumns] = OrderedDict()

    async def shown(self, at: str | None) -> ShownMoment | None:
        """Return the moment of a page, and those that it can show; None without a ledger.

        Raises: `BadRequest`: the text names no moment, or one that is still to come.
        """
        if self._ledger is None:
            return None

        def read(connection: Connection) -> ShownMoment:
            kept = kept_commits(connection)
            if at is None:
                return ShownMoment(kept)
            try:
                return ShownMoment(kept, moment_of(connection, at))
            except PastMissing as error:
                return ShownMoment(kept, missing=str(error))

        return await self._ledger.database.read(read, by_key=True)

    async def moment(self, at: str) -> PastMoment:
        """Return the moment that a text names.

        Raises:
            BadRequest: the text names no moment, or one that is still to come.
            PastMissing: the commits of that moment are not kept.
        """
        ledger = self._having_ledger()
        return await ledger.database.read(lambda connection: moment_of(connection, at), by_key=True)

    async def host(self, root: str, version: int) -> HostAsOf | None:
        """Return the tree below a provider as of a commit; None if there was no such provider.

        Raises: `PastMissing`.
        """
        return await self._read(version, lambda connection, view: host_at(connection, view, root, version))

    async def consumer(self, uuid: str, version: int) -> ConsumerAsOf:
        """Return a consumer as of a commit. Raises: `PastMissing`."""
        return await self._read(
            version, lambda connection, view: consumer_at(connection, view, uuid, version)
        )

    async def _read(self, version: int, work: Callable[[Connection, IndexView], T]) -> T:
        ledger = self._having_ledger()
        await ledger.current()
        view = IndexView(()) if self._keeper is None else await self._keeper.with_view(lambda view: view)

        def read(connection: Connection) -> T:
            return work(connection, self._reaching(connection, view, version))

        return await ledger.database.read(read)

    def _reaching(self, connection: Connection, view: IndexView, version: int) -> IndexView:
        """Return a view with all commits after a version that a snapshot has. Raises: `PastMissing`."""
        kept = kept_commits(connection)
        newest = kept.newest
        if version >= newest:
            return view
        if version < kept.oldest - 1:
            raise not_kept(f"version {version}", kept)
        if view.blocks:
            view = _to_head(connection, view, newest)
        if view.blocks and view.first <= version + 1 and view.last >= newest:
            return view
        if self._keeper is None:
            raise PastMissing(NO_INDEX)
        raise self._not_indexed(view, version)

    async def columns(self, version: int) -> PastColumns:
        """Return the amounts of all providers as of a commit. Raises: `PastMissing`."""
        ledger, keeper = self._having_ledger(), self._keeper
        if keeper is None:
            raise PastMissing(NO_INDEX)
        kept = self._columns.get(version)
        if kept is None:
            present = await self._present(ledger)

            def made(view: IndexView) -> PastColumns:
                if (
                    version < present.version
                    and not view.first <= version + 1 <= present.version <= view.last
                ):
                    raise self._not_indexed(view, version)
                return columns_at(present, view, version)

            kept = self._columns[version] = await keeper.with_view(made)
        self._columns.move_to_end(version)
        while len(self._columns) > MOST_COLUMNS:
            self._columns.popitem(last=False)
        return kept

    async def nodes(self, moment: PastMoment) -> PastNodes:
        """Return the amounts and states of all nodes of now as of a moment. Raises: `PastMissing`."""
        columns = await self.columns(moment.version)
        keys, log, keeper = await self._node_keys.keys(), self.log, self._keeper
        states = None
        if log is not None and keeper is not None:
            states = await keeper.run_in_thread(lambda: log.states_at(moment.at, keys))
        return PastNodes(columns, columns.places(keys), states)

    async def uses(self, times: Sequence[float]) -> UseHistory | None:
        """Return the use of all classes at some times; None without an index.

        ``times``: ascending, at equal distances, in seconds since the epoch.
        """
        if self._ledger is None or self._keeper is None:
            return None
        fleet = await self._ledger.current()
        version = fleet.version
        totals = {each.resource_class: (each.used, each.capacity) for each in class_uses(fleet)}
        return await self._keeper.with_view(lambda view: use_history(view, totals, version, times))

    async def time_of(self, at: str) -> float:
        """Return the time that a text names, in seconds since the epoch; of a commit, its time.

        Raises: as `moment`, but a time may be any.
        """
        asked = number_or_time(at)
        if isinstance(asked, int) and self._ledger is not None:
            return (await self.moment(at)).at
        return float(asked)

    async def _present(self, ledger: Ledger) -> PresentProviders:
        while True:
            await self._keys.prepare(await ledger.current())
            fleet = await ledger.current()
            keys = self._keys.of(fleet)
            if keys is not None:
                return present_providers(fleet, keys)

    def _not_indexed(self, view: IndexView, version: int) -> PastMissing:
        """Return the error of a version that the index does not reach."""
        upto = "it has none yet"
        if view.blocks:
            upto = f"it begins at commit {view.first}, of {iso(float(view.blocks[0].stamps['at'][0]))}"
        filling = self._keeper is not None and self._keeper.filling
        why = "the index of the past is being made" if filling else "the index of the past is not so long"
        return PastMissing(f"version {version} cannot be shown: {why}, {upto}")

    def _having_ledger(self) -> Ledger:
        if self._ledger is None:
            raise PastMissing(NO_LEDGER)
        return self._ledger


NO_PAST: Final = PastReads(None, None)
"""The past of a process that has none."""


def _to_head(connection: Connection, view: IndexView, newest: int) -> IndexView:
    """Return a view with the few commits that were made since."""
    if view.last >= newest:
        return view
    collector = EntryCollector()
    for commit in commits_after(connection, view.last, MOST_BEHIND, 2**31).commits:
        collector.add(commit)
    return view.with_block(block_of(collector.take())) if len(collector) else view
