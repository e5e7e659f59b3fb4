"""Usages of projects and users: sums of allocations by consumer type and resource class.

The sums are columns with one row for each project, user and consumer type that occur together, and every
change of allocations keeps them up to date. A sum over the tables took 0.7 s with a million consumers. A row
takes some 500 bytes with its names, and 8 bytes for each resource class that rows up to it use.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet.columns import Int32, Int64, grown
from roost.model.allocation import Allocations, Consumer, Resources
from roost.model.change import AllocationsChanged


class Usage(msgspec.Struct, frozen=True):
    """The number of consumers of one type, and the sum of their allocations by resource class."""

    consumer_type: str
    consumers: int
    resources: Resources


class Owner(NamedTuple):
    """A project, one of its users, and a type of the consumers that they own."""

    project_id: str
    user_id: str
    consumer_type: str


class _Names:
    """Small numbers for names. A number is reused for another name when no row uses the name."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def copy(self) -> "_Names":
        other = _Names()
        other.numbers, other.names = self.numbers.copy(), self.names.copy()
        other._uses, other._free = self._uses.copy(), self._free.copy()
        return other

    def take(self, name: str) -> int:
        """Return the number of a name, which one more row uses."""
        number = self.numbers.get(name)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.names[number] = name
            else:
                number = len(self.names)
                self.names.append(name)
                self._uses.append(0)
            self.numbers[name] = number
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Count one row less that uses the name."""
        self._uses[number] -= 1
        if not self._uses[number]:
            del self.numbers[self.names[number]]
            self._free.append(number)


class OwnerUsages:
    """The usages of all projects and users.

    The changes come from a fleet, which has checked them: this class has only sums, and the inverse of a
    change undoes it.
    """

    def __init__(self) -> None:
        self._projects, self._users, self._types = _Names(), _Names(), _Names()
        self._row_of: dict[int, int] = {}
        self._free: list[int] = []
        self._n_rows = 0
        # By row; a free row has project -1.
        self._project: Int32 = np.zeros(0, dtype=np.int32)
        self._user: Int32 = np.zeros(0, dtype=np.int32)
        self._type: Int32 = np.zeros(0, dtype=np.int32)
        self._consumers: Int64 = np.zeros(0, dtype=np.int64)
        self._amounts: dict[str, Int64] = {}
        """By resource class; a column may end before the last row."""

    @classmethod
    def load(cls, owners: Sequence[Owner], consumers: Int64, amounts: Mapping[str, Int64]) -> "OwnerUsages":
        """Make usages from columns. ``consumers``: the number of each owner's, int64[len(owners)].

        ``amounts``: resource class -> the sum that each owner's consumers hold, int64[len(owners)].
        """
        made = cls()
        for owner in owners:
            made._create(owner)
        made._consumers[: len(owners)] = consumers
        made._amounts = dict(amounts)
        return made

    def copy(self) -> "OwnerUsages":
        """Return an independent copy."""
        other = OwnerUsages()
        other._projects, other._users = self._projects.copy(), self._users.copy()
        other._types = self._types.copy()
        other._row_of, other._free, other._n_rows = self._row_of.copy(), self._free.copy(), self._n_rows
        other._project, other._user = self._project.copy(), self._user.copy()
        other._type, other._consumers = self._type.copy(), self._consumers.copy()
        other._amounts = {name: column.copy() for name, column in self._amounts.items()}
        return other

    def usages(self, project_id: str, user_id: str | None = None) -> list[Usage]:
        """Return the usages of a project or of one of its users, one for each consumer type, sorted by it."""
        project = self._projects.numbers.get(project_id)
        if project is None:
            return []
        chosen = self._project[: self._n_rows] == project
        if user_id is not None:
            chosen &= self._user[: self._n_rows] == self._users.numbers.get(user_id, -1)
        rows = np.flatnonzero(chosen)
        types, place = np.unique(self._type[rows], return_inverse=True)
        consumers = np.zeros(len(types), dtype=np.int64)
        np.add.at(consumers, place, self._consumers[rows])
        resources: list[Resources] = [{} for _ in types]
        for name, column in sorted(self._amounts.items()):
            within = rows < len(column)
            sums = np.zeros(len(types), dtype=np.int64)
            np.add.at(sums, place[within], column[rows[within]])
            for at in np.flatnonzero(sums).tolist():
                resources[at][name] = sums.item(at)
        names = [self._types.names[number] for number in types.tolist()]
        found = map(Usage, names, consumers.tolist(), resources)
        return sorted(found, key=lambda usage: usage.consumer_type)

    def owners(self) -> list[Owner]:
        """Return all owners that have usages, in no order."""
        return [
            Owner(
                self._projects.names[self._project.item(row)],
                self._users.names[self._user.item(row)],
                self._types.names[self._type.item(row)],
            )
            for row in self._row_of.values()
        ]

    def apply(self, change: AllocationsChanged) -> None:
        """Apply the change of one consumer."""
        if change.after is not None:
            self._add(self._row(change.after), 1, change.holds)
        if change.before is not None:
            row = self._row(change.before)
            self._add(row, -1, change.held)
            if not self._consumers[row]:
                self._release(row)

    def _add(self, row: int, sign: int, allocations: Allocations) -> None:
        self._consumers[row] += sign
        for resources in allocations.values():
            for name, amount in resources.items():
                column = self._amounts.get(name)
                if column is None or row >= len(column):
                    column = np.zeros(0, dtype=np.int64) if column is None else column
                    column = self._amounts[name] = grown(column, row + 1, 0)
                column[row] += sign * amount

    def _row(self, consumer: Consumer) -> int:
        """Return the row of a consumer's owner, a new one if there is none."""
        project = self._projects.numbers.get(consumer.project_id)
        user = self._users.numbers.get(consumer.user_id)
        kind = self._types.numbers.get(consumer.consumer_type)
        if project is not None and user is not None and kind is not None:
            row = self._row_of.get(_key(project, user, kind))
            if row is not None:
                return row
        return self._create(Owner(consumer.project_id, consumer.user_id, consumer.consumer_type))

    def _create(self, owner: Owner) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self._n_rows
            self._n_rows += 1
            self._project = grown(self._project, self._n_rows, -1)
            self._user = grown(self._user, self._n_rows, -1)
            self._type = grown(self._type, self._n_rows, -1)
            self._consumers = grown(self._consumers, self._n_rows, 0)
        project, user = self._projects.take(owner.project_id), self._users.take(owner.user_id)
        kind = self._types.take(owner.consumer_type)
        self._project[row], self._user[row], self._type[row] = project, user, kind
        self._row_of[_key(project, user, kind)] = row
        return row

    def _release(self, row: int) -> None:
        """Free the row of an owner without consumers, unless a later change still has to subtract amounts."""
        columns = [column for column in self._amounts.values() if row < len(column)]
        if any(column[row] for column in columns):
            return
        project, user, kind = self._project.item(row), self._user.item(row), self._type.item(row)
        del self._row_of[_key(project, user, kind)]
        self._project[row] = -1
        self._free.append(row)
        self._projects.release(project)
        self._users.release(user)
        self._types.release(kind)


def _key(project: int, user: int, kind: int) -> int:
    return (project << 64) | (user << 32) | kind
