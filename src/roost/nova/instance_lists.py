"""The instances on the hosts of one cell, and the hosts whose instances have changed."""

import datetime
import sys
from collections.abc import Collection, Mapping
from typing import Final

from roost.model.node import NodeInstance
from roost.nova.database.instances import (
    HostMark,
    read_changes,
    read_image_properties,
    read_instances,
    read_marks,
    read_newest,
)
from roost.storage import Database

OVERLAP: Final = datetime.timedelta(minutes=5)
"""Time before the newest change in which changes are looked for again: writers' clocks differ, and a
transaction may commit later than the time that it wrote."""

Named = Mapping[str, Mapping[str, NodeInstance]]
"""Instances by the name of their node."""


class InstanceLists:
    """The instances on each host of a cell, as they were read last.

    ``image_properties``: whether the properties of their images are read. ``rows`` counts the rows read.
    """

    def __init__(self, database: Database, image_properties: bool) -> None:
        self.rows = 0
        self._database = database
        self._image_properties = image_properties
        self._marks: dict[str, HostMark] = {}
        self._named: dict[str, Named] = {}
        self._newest: datetime.datetime | None = None
        self._recent: dict[str, datetime.datetime] = {}

    def of(self, host: str) -> Named:
        """Return the instances of a host."""
        return self._named.get(host, {})

    async def changed(self) -> set[str]:
        """Return the hosts that an instance has come to or has left, or where one has changed.

        Raises `StorageError`.
        """
        marks = await self._database.read(read_marks())
        before = self._marks
        hosts = {host for host in marks.keys() | before.keys() if marks.get(host) != before.get(host)}
        newest = await self._database.read(read_newest())
        if self._newest is not None:
            changes = await self._database.read(read_changes(self._newest - OVERLAP))
            hosts |= {each.host for each in changes if self._recent.get(each.uuid) != each.at}
            self._recent = {each.uuid: each.at for each in changes}
            self.rows += len(changes)
        if newest is not None:
            self._newest = newest
        self.rows += len(marks)
        return hosts

    async def read(self, hosts: Collection[str]) -> None:
        """Read the instances of hosts anew. Raises `StorageError`."""
        if not hosts:
            return
        rows = await self._database.read(read_instances(hosts))
        self.rows += len(rows)
        known = {
            uuid: instance
            for host in hosts
            for listed in self.of(host).values()
            for uuid, instance in listed.items()
        }
        new = {row.uuid: row for row in rows if not _same(known.get(row.uuid), row.project_id, row.image)}
        # Those of instances on volumes too: Nova keeps the properties of the volume's image for them.
        properties = await self._properties(list(new))
        for uuid, row in new.items():
            known[uuid] = NodeInstance(
                project_id=sys.intern(row.project_id),
                image=None if row.image is None else sys.intern(row.image),
                image_properties=properties.get(uuid, {}),
            )
        found: dict[str, dict[str, dict[str, NodeInstance]]] = {}
        ids: dict[str, list[int]] = {}
        for row in rows:
            found.setdefault(row.host, {}).setdefault(row.nodename, {})[row.uuid] = known[row.uuid]
            ids.setdefault(row.host, []).append(row.id)
        for host in hosts:
            if host in found:
                self._named[host] = found[host]
                self._marks[host] = HostMark(len(ids[host]), sum(ids[host]))
            else:
                self._named.pop(host, None)
                self._marks.pop(host, None)

    async def _properties(self, uuids: list[str]) -> Mapping[str, dict[str, str]]:
        if not self._image_properties or not uuids:
            return {}
        found = await self._database.read(read_image_properties(uuids))
        self.rows += sum(map(len, found.values()))
        return found


def _same(known: NodeInstance | None, project: str, image: str | None) -> bool:
    return known is not None and known.project_id == project and known.image == image
