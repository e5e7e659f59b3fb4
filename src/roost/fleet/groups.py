"""Server groups: the members of each group, and their number on each host.

A member is a consumer with allocations. It is on the hosts that it takes from, and a host is the root of a
tree. A sharing provider is not a host: two instances whose disks are on one NFS server are on two hosts.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Int64, Rows
from roost.fleet.errors import Inconsistent

HostsOf = Callable[[Iterable[int]], tuple[int, ...]]
"""The hosts of a consumer with allocations from these providers: rows to the rows of roots, ascending."""

GroupMembers = Mapping[str, Mapping[str, Iterable[int]]]
"""Group -> consumer -> rows of the providers that it has allocations from."""


class GroupHosts(NamedTuple):
    """The hosts of one group's members, as parallel columns.

    ``rows``: the roots, ascending, intp[n]. ``counts``: the members on each, at least 1, int64[n].
    """

    rows: Rows
    counts: Int64


_NO_HOSTS = GroupHosts(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))


class _Member(NamedTuple):
    """The providers that a member has allocations from, and its hosts: rows, both ascending."""

    providers: tuple[int, ...]
    hosts: tuple[int, ...]


class _Group:
    """The members of one group. ``columns`` are made when they are read."""

    __slots__ = ("columns", "counts", "members")

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.counts: dict[int, int] = {}
        self.columns: GroupHosts | None = None

    def copy(self) -> "_Group":
        other = _Group()
        other.members, other.counts = self.members.copy(), self.counts.copy()
        other.columns = self.columns
        return other

    def count(self, hosts: Iterable[int], step: int) -> None:
        self.columns = None
        for host in hosts:
            number = self.counts.get(host, 0) + step
            if number:
                self.counts[host] = number
            else:
                del self.counts[host]


class Groups:
    """All server groups that have members. A group without members has no entry.

    A member that joins or leaves costs work for its own hosts only.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    @classmethod
    def load(cls, members: GroupMembers, hosts_of: HostsOf) -> "Groups":
        """Make the groups with these members."""
        made = cls()
        for name, consumers in members.items():
            for consumer, providers in consumers.items():
                made._join(name, consumer, tuple(sorted(providers)), hosts_of)
        return made

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def names(self) -> Iterable[str]:
        """Return the groups that have members, in no order."""
        return self._groups.keys()

    def hosts(self, group: str) -> GroupHosts:
        """Return the hosts of a group's members, and the number of members on each.

        The result is the same object until a member joins or leaves, so that callers can cache by identity.
        Nobody may write to its columns.
        """
        found = self._groups.get(group)
        if found is None:
            return _NO_HOSTS
        if found.columns is None:
            rows = np.fromiter(found.counts.keys(), dtype=np.intp, count=len(found.counts))
            counts = np.fromiter(found.counts.values(), dtype=np.int64, count=len(found.counts))
            order = np.argsort(rows)
            found.columns = GroupHosts(rows[order], counts[order])
        return found.columns

    def count(self, group: str, host: int) -> int:
        """Return the number of a group's members on one host. ``host``: the row of the root."""
        found = self._groups.get(group)
        return 0 if found is None else found.counts.get(host, 0)

    def size(self, group: str) -> int:
        """Return the number of a group's members on all hosts."""
        found = self._groups.get(group)
        return 0 if found is None else len(found.members)

    def members(self, group: str) -> dict[str, tuple[int, ...]]:
        """Return the consumers that are members of a group, each with the rows of its hosts, ascending."""
        found = self._groups.get(group)
        return {} if found is None else {name: member.hosts for name, member in found.members.items()}

    def providers(self, group: str) -> dict[str, tuple[int, ...]]:
        """Return a group's members, each with the rows of the providers that it takes from, ascending."""
        found = self._groups.get(group)
        return {} if found is None else {name: member.providers for name, member in found.members.items()}

    def hosts_of(self, group: str, consumer: str) -> tuple[int, ...]:
        """Return the rows of a member's hosts, ascending; none if the consumer is no member."""
        found = self._groups.get(group)
        member = None if found is None else found.members.get(consumer)
        return () if member is None else member.hosts

    # Changes

    def check(self, group: str | None, consumer: str, held: Iterable[int], joins: str | None) -> None:
        """Check that a consumer holds ``held`` as a member of ``group``, and may join the group ``joins``.

        Raises: `Inconsistent` if it does not.
        """
        if group is not None:
            found = self._groups.get(group)
            member = None if found is None else found.members.get(consumer)
            if member is None or member.providers != tuple(sorted(held)):
                raise Inconsistent(f"consumer {consumer} is not a member of server group {group} as stated")
        if joins is not None and joins != group and self.hosts_of(joins, consumer):
            raise Inconsistent(f"consumer {consumer} is already a member of server group {joins}")

    def move(
        self,
        consumer: str,
        before: str | None,
        after: str | None,
        providers: Iterable[int],
        hosts_of: HostsOf,
    ) -> None:
        """Take a consumer out of group ``before``, and put it into ``after`` with these providers."""
        if before is not None:
            group = self._groups[before]
            group.count(group.members.pop(consumer).hosts, -1)
            if not group.members:
                del self._groups[before]
        if after is not None:
            self._join(after, consumer, tuple(sorted(providers)), hosts_of)

    def recount(self, hosts_of: HostsOf) -> None:
        """Find the hosts of all members anew, after trees or sharing providers changed."""
        for group in self._groups.values():
            group.counts = {}
            for name, member in group.members.items():
                hosts = hosts_of(member.providers)
                group.members[name] = _Member(member.providers, hosts)
                group.count(hosts, 1)

    def copy(self) -> "Groups":
        """Return an independent copy."""
        other = Groups()
        other._groups = {name: group.copy() for name, group in self._groups.items()}
        return other

    def _join(self, name: str, consumer: str, providers: tuple[int, ...], hosts_of: HostsOf) -> None:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group()
        hosts = hosts_of(providers)
        group.members[consumer] = _Member(providers, hosts)
        group.count(hosts, 1)
