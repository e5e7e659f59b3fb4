"""Reads consumers and their allocations from an OpenStack Placement database."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger import Held
from roost.ledger.findings import EMPTY_CONSUMER
from roost.model.allocation import UNKNOWN_TYPE, Allocations, Consumer
from roost.model.vocabulary import MAX_INT
from roost.placement.exchange import anomalies
from roost.placement.exchange import placement_tables as rows
from roost.placement.exchange.provider_rows import Names
from roost.placement.exchange.report import ExchangeReport
from roost.placement.options import PlacementOptions
from roost.storage import one_of

CONSUMERS_PER_PAGE = 1000
"""Consumers that one query reads."""

Amounts = Iterable[tuple[int, int, Any]]
"""Allocations: provider id, resource class id, and the amount in the source, which may be no integer."""

_CONSUMER = rows.consumers.c
_ALLOCATION = rows.allocations.c
_AFTER: sa.BindParameter[int] = sa.bindparam("after")
_CONSUMERS = (
    sa.select(
        _CONSUMER.id,
        _CONSUMER.uuid,
        rows.projects.c.external_id.label("project"),
        rows.users.c.external_id.label("user"),
        rows.consumer_types.c.name.label("type"),
        _CONSUMER.consumer_type_id,
        _CONSUMER.generation,
    )
    .outerjoin(rows.projects, rows.projects.c.id == _CONSUMER.project_id)
    .outerjoin(rows.users, rows.users.c.id == _CONSUMER.user_id)
    .outerjoin(rows.consumer_types, rows.consumer_types.c.id == _CONSUMER.consumer_type_id)
    .where(_CONSUMER.id > _AFTER)
    .order_by(_CONSUMER.id)
    .limit(CONSUMERS_PER_PAGE)
)
_ALLOCATIONS = (
    sa.select(_CONSUMER.id, _ALLOCATION.resource_provider_id, _ALLOCATION.resource_class_id, _ALLOCATION.used)
    # The database compares the uuids; MariaDB ignores case.
    .join_from(rows.consumers, rows.allocations, _ALLOCATION.consumer_id == _CONSUMER.uuid)
    .where(_CONSUMER.id > _AFTER, _CONSUMER.id <= sa.bindparam("last"))
)
_WITHOUT_ROW = (
    sa.select(_ALLOCATION.consumer_id)
    .outerjoin(rows.consumers, _ALLOCATION.consumer_id == _CONSUMER.uuid)
    .where(_CONSUMER.id.is_(None))
    .distinct()
    .order_by(_ALLOCATION.consumer_id)
    .limit(CONSUMERS_PER_PAGE)
)
_ALLOCATIONS_OF = sa.select(
    _ALLOCATION.consumer_id, _ALLOCATION.resource_provider_id, _ALLOCATION.resource_class_id, _ALLOCATION.used
).where(one_of(_ALLOCATION.consumer_id, "uuids"))


class ConsumerReader:
    """Reads the consumers of a snapshot: first consumers with a row, then consumers with allocations only.

    Args:
        connection: the snapshot.
        names: its resource classes and providers.
        incomplete: the options that name the project and user of consumers without a row.
        report: receives the anomalies.
    """

    def __init__(
        self, connection: Connection, names: Names, incomplete: PlacementOptions, report: ExchangeReport
    ) -> None:
        self._connection = connection
        self._names = names
        self._project = incomplete.incomplete_consumer_project_id
        self._user = incomplete.incomplete_consumer_user_id
        self._report = report

    def read(self) -> Iterator[list[Held]]:
        """Yield all consumers that have allocations, `CONSUMERS_PER_PAGE` at a time."""
        # Ids begin at 1, but a damaged table may have negative ones.
        after = -(2**31)
        while found := self._connection.execute(_CONSUMERS, {"after": after}).all():
            last = found[-1].id
            held: defaultdict[int, list[tuple[int, int, Any]]] = defaultdict(list)
            for consumer, *amount in self._connection.execute(_ALLOCATIONS, {"after": after, "last": last}):
                held[consumer].append((amount[0], amount[1], amount[2]))
            yield [each for row in found if (each := self._with_row(row, held.get(row.id, ())))]
            after = last
        yield from self._without_row()

    def _without_row(self) -> Iterator[list[Held]]:
        query = _WITHOUT_ROW
        while uuids := list(self._connection.execute(query).scalars()):
            held: defaultdict[str, list[tuple[int, int, Any]]] = defaultdict(list)
            for uuid, *amount in self._connection.execute(_ALLOCATIONS_OF, {"uuids": uuids}):
                held[uuid].append((amount[0], amount[1], amount[2]))
            yield [each for uuid, amounts in held.items() if (each := self._incomplete(uuid, amounts))]
            query = _WITHOUT_ROW.where(_ALLOCATION.consumer_id > uuids[-1])

    def _with_row(self, row: Any, amounts: Amounts) -> Held | None:
        subject = f"consumer {row.uuid}"
        if not self._usable(subject, row.uuid):
            return None
        allocations = self._allocations(subject, amounts)
        if not allocations:
            # In Roost a consumer exists while it has allocations.
            self._report.add(EMPTY_CONSUMER, subject, "it has no allocations; left out")
            return None
        project = self._owner(subject, "project", row.project, self._project)
        user = self._owner(subject, "user", row.user, self._user)
        kind = UNKNOWN_TYPE
        if row.consumer_type_id is not None:
            kind = self._owner(subject, "consumer type", row.type, UNKNOWN_TYPE)
        return Held(Consumer(row.uuid, project, user, row.generation, kind), allocations)

    def _incomplete(self, uuid: str, amounts: Amounts) -> Held | None:
        subject = f"consumer {uuid}"
        if not self._usable(subject, uuid):
            return None
        allocations = self._allocations(subject, amounts)
        if not allocations:
            return None
        detail = f"it has allocations but no row; kept with project {self._project}, user {self._user}"
        self._report.add(anomalies.NO_CONSUMER, subject, detail)
        return Held(Consumer(uuid, self._project, self._user, 0), allocations)

    def _owner(self, subject: str, kind: str, name: str | None, instead: str) -> str:
        if name is None:
            self._report.add(anomalies.NO_OWNER, subject, f"its {kind} has no row; kept with {instead}")
            return instead
        return anomalies.shortened(name, rows.NAME_LIMIT, f"{kind} of {subject}", self._report)

    def _usable(self, subject: str, uuid: str) -> bool:
        if len(uuid) > anomalies.UUID_LIMIT:
            detail = f"more than {anomalies.UUID_LIMIT} characters; left out with its allocations"
            self._report.add(anomalies.ODD_UUID, subject, detail)
            return False
        if not anomalies.is_canonical(uuid):
            self._report.add(anomalies.ODD_UUID, subject, "not a lower-case UUID with dashes; kept")
        return True

    def _allocations(self, subject: str, amounts: Amounts) -> Allocations:
        held: Allocations = {}
        for row, class_id, amount in amounts:
            provider = self._named(subject, amount, "resource provider", self._names.providers, row)
            name = self._named(subject, amount, "resource class", self._names.classes, class_id)
            if provider is None or name is None:
                continue
            what = f"allocation of {name} of resource provider {provider} by {subject}"
            before = held.get(provider, {}).get(name, 0)
            if not isinstance(amount, int) or not 0 < before + amount <= MAX_INT or amount < 1:
                self._report.add(anomalies.ODD_AMOUNT, what, f"its amount is {amount}; left out")
                continue
            if before:
                detail = f"a second row with {amount}, the first with {before}; kept as {before + amount}"
                self._report.add(anomalies.DUPLICATE_ALLOCATION, what, detail)
            held.setdefault(provider, {})[name] = before + amount
        return held

    def _named(
        self, subject: str, amount: Any, kind: str, names: Mapping[int, str], number: int
    ) -> str | None:
        name = names.get(number)
        if name is None:
            what = f"allocation of {amount} by {subject}"
            detail = f"there is no {kind} with id {number}; left out"
            self._report.add(anomalies.ORPHANED_ALLOCATION, what, detail)
        return name
