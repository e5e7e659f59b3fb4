"""The rows of maintenances and of their hosts, and the reads of them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.model.maintenance import (
    DISABLING,
    EMPTYING,
    IN_WAVE,
    UNDER_WAY,
    EarlierWord,
    HookResult,
    MaintainedHost,
    Maintenance,
)
from roost.state.api_database.drains import ENDED
from roost.state.api_database.tables import maintenance_hosts, maintenances, operator_words
from roost.storage import one_of_constants, short_read

MAINTENANCES = sa.select(maintenances)
HOSTS = sa.select(maintenance_hosts)
IS_UNDER_WAY = one_of_constants(maintenances.c.state, UNDER_WAY)

_encode = msgspec.json.Encoder().encode
_TARGETS = msgspec.json.Decoder(dict[str, str])
_BEFORE = msgspec.json.Decoder(EarlierWord)
_RESULT = msgspec.json.Decoder(HookResult)


def json_text(value: object) -> str:
    """Return a value as a column of JSON has it."""
    return _encode(value).decode()


def maintenance_of(row: sa.Row[Any]) -> Maintenance:
    """Return the maintenance of a row."""
    return Maintenance(
        uuid=row.uuid,
        state=row.state,
        by=Requester(row.by_user, row.by_project, row.by_request),
        began=row.began,
        changed_at=row.changed_at,
        reserve=row.reserve,
        most_hosts=row.most_hosts,
        keeps_going=row.keeps_going,
        wave=row.wave,
        reason=row.reason,
        owner=row.owner,
        owner_epoch=row.owner_epoch,
    )


def host_of(row: sa.Row[Any]) -> MaintainedHost:
    """Return the host of a row."""
    return MaintainedHost(
        maintenance=row.maintenance,
        host=row.host,
        cell=row.cell,
        state=row.state,
        changed_at=row.changed_at,
        wave=row.wave,
        targets=_TARGETS.decode(row.targets),
        word_version=row.word_version,
        before=None if row.word_before is None else _BEFORE.decode(row.word_before),
        calls=row.calls,
        failures=row.failures,
        result=None if row.result is None else _RESULT.decode(row.result),
        reason=row.reason,
    )


@short_read
def find_maintenance(connection: Connection, uuid: str) -> Maintenance | None:
    """Return a maintenance; None: there is none."""
    row = connection.execute(MAINTENANCES.where(maintenances.c.uuid == uuid)).one_or_none()
    return None if row is None else maintenance_of(row)


@short_read
def list_maintenances(
    connection: Connection, most: int, after: tuple[float, str] | None, under_way: bool | None
) -> list[Maintenance]:
    """Return the newest maintenances, at most ``most``.

    ``after``: begin (seconds since the epoch) and uuid of the one after which the list goes on.
    ``under_way``: only those that have not ended, or only those that have.
    """
    columns = maintenances.c
    query = MAINTENANCES.order_by(columns.began.desc(), columns.uuid).limit(most)
    if after is not None:
        began, uuid = after
        query = query.where((columns.began < began) | ((columns.began == began) & (columns.uuid > uuid)))
    if under_way is not None:
        query = query.where(IS_UNDER_WAY if under_way else sa.not_(IS_UNDER_WAY))
    return [maintenance_of(row) for row in connection.execute(query)]


@short_read
def count_hosts(connection: Connection, uuid: str) -> dict[str, int]:
    """Return the numbers of hosts of a maintenance by state."""
    columns = maintenance_hosts.c
    query = (
        sa.select(columns.state, sa.func.count())
        .where(columns.maintenance == uuid)
        .group_by(columns.state)
        .order_by(columns.state)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


@short_read
def list_hosts(
    connection: Connection, uuid: str, most: int, after: str = "", states: Sequence[str] = ()
) -> list[MaintainedHost]:
    """Return hosts of a maintenance by name, at most ``most``. ``states``: only those in one of them."""
    columns = maintenance_hosts.c
    query = HOSTS.where(columns.maintenance == uuid, columns.host > after).order_by(columns.host).limit(most)
    if states:
        query = query.where(one_of_constants(columns.state, states))
    return [host_of(row) for row in connection.execute(query)]


@short_read
def hosts_in_state(connection: Connection, uuid: str, state: str) -> list[MaintainedHost]:
    """Return all hosts of a maintenance that are in a state, by name."""
    columns = maintenance_hosts.c
    mine = HOSTS.where(columns.maintenance == uuid, columns.state == state).order_by(columns.host)
    return [host_of(row) for row in connection.execute(mine)]


@short_read
def maintenances_of_host(connection: Connection, host: str) -> list[str]:
    """Return the uuids of the maintenances under way that have a host."""
    query = _WITH_HOST.where(maintenance_hosts.c.host == host).order_by(maintenances.c.began)
    return list(connection.execute(query).scalars())


_WITH_HOST = (
    sa.select(maintenances.c.uuid)
    .join(maintenance_hosts, maintenance_hosts.c.maintenance == maintenances.c.uuid)
    .where(IS_UNDER_WAY)
)


class HostInWave(msgspec.Struct, frozen=True):
    """A host of the wave that is under way, with the word that holds for it now.

    ``disabled``: the word disables it. ``is_own``: it is the one that the maintenance said. ``moves``: it has
    the wish that instances move away. ``empty``: its drain has ended: nothing is there, and nothing can come
    any more.
    """

    row: MaintainedHost
    disabled: bool
    is_own: bool
    moves: bool
    empty: bool


@short_read
def read_wave(connection: Connection, uuid: str) -> list[HostInWave]:
    """Return the hosts of the wave of a maintenance that is under way, by name."""
    return _in_wave(connection, maintenance_hosts.c.maintenance == uuid)


def read_host_in_wave(connection: Connection, uuid: str, host: str) -> HostInWave | None:
    """Return a host of the wave that is under way; None: it is none of them."""
    mine = sa.and_(maintenance_hosts.c.maintenance == uuid, maintenance_hosts.c.host == host)
    return next(iter(_in_wave(connection, mine)), None)


def _in_wave(connection: Connection, these: sa.ColumnElement[bool]) -> list[HostInWave]:
    return [
        HostInWave(
            host_of(row),
            disabled := row.version is not None and not row.enabled,
            disabled and row.version == row.word_version,
            disabled and row.moves_version == row.version,
            disabled and row.drain == ENDED and row.drain_version == row.version,
        )
        for row in connection.execute(_IN_WAVE.where(these))
    ]


_WORD = operator_words.c
_IN_WAVE = (
    sa.select(
        maintenance_hosts,
        _WORD.enabled,
        _WORD.version,
        _WORD.moves_version,
        _WORD.drain,
        _WORD.drain_version,
    )
    .outerjoin(
        operator_words,
        sa.and_(
            _WORD.cell == maintenance_hosts.c.cell, _WORD.host == maintenance_hosts.c.host, _WORD.node == ""
        ),
    )
    .where(one_of_constants(maintenance_hosts.c.state, IN_WAVE))
    .order_by(maintenance_hosts.c.host)
)


@short_read
def read_planned_targets(connection: Connection, versions: tuple[int, ...]) -> dict[int, dict[str, str]]:
    """Return the planned targets of instances by the version of the word that disabled their host."""
    columns = maintenance_hosts.c
    state = one_of_constants(columns.state, (DISABLING, EMPTYING))
    query = sa.select(columns.word_version, columns.targets).where(state, columns.word_version.in_(versions))
    found: dict[int, dict[str, str]] = {version: {} for version in versions}
    for row in connection.execute(query):
        # All hosts of a wave are disabled by words of one version.
        found[row.word_version].update(_TARGETS.decode(row.targets))
    return found
