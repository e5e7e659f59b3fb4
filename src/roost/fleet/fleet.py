"""The fleet: every resource provider with all its data, in memory, at one version of the ledger.

Changes are the only way to alter a fleet, and every change can be undone.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from roost.fleet.assigned import AssignedOnNodes
from roost.fleet.columns import Int64, Rows
from roost.fleet.errors import FleetError, Inconsistent
from roost.fleet.fleet_data import FleetData
from roost.fleet.groups import GroupMembers, Groups
from roost.fleet.inventory_columns import InventoryColumns, InventoryRecords
from roost.fleet.inverted_index import NameSets
from roost.fleet.owner_usages import OwnerUsages
from roost.fleet.provider_forest import ProviderColumns
from roost.fleet.work import Meter
from roost.model.allocation import Allocations
from roost.model.assignment import Assignment
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
    WordAnnounced,
    inverse,
)
from roost.model.vocabulary import SHARING_TRAIT

NO_MEMBERS: GroupMembers = MappingProxyType({})
"""No server group has members."""


class Fleet(FleetData):
    """All providers with their data, server groups and assignments, at ``version`` of the ledger.

    ``resource_classes`` and ``traits``: name -> id in the tables, of all that exist. ``groups``: the
    members of server groups. ``assigned``: the assignments of consumers. ``owner_usages``: of projects and
    users. ``word``: the mark of the operator's word that was announced last, 0 for none. ``caches``: caches
    of other modules for this fleet, by type; a copy begins with none. ``meter``: counts the work of all
    computations on the fleet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.resource_classes: dict[str, int] = {}
        self.traits: dict[str, int] = {}
        self.groups = Groups()
        self.assigned = AssignedOnNodes()
        self.word = 0
        self.owner_usages = OwnerUsages()
        self.caches: dict[type, object] = {}
        self.meter = Meter()

    @classmethod
    def load(
        cls,
        providers: ProviderColumns,
        inventories: Mapping[str, InventoryRecords],
        traits: NameSets,
        aggregates: NameSets,
        used: Mapping[str, tuple[Rows, Int64]],
        members: GroupMembers = NO_MEMBERS,
        assignments: Iterable[tuple[str, Assignment]] = (),
        owner_usages: OwnerUsages | None = None,
    ) -> "Fleet":
        """Make a fleet from the columns of the tables. ``used``: resource class -> rows, and the use of each.

        Change by change, a hundred thousand hosts with three inventories and forty traits took 14 seconds,
        mostly for checks of each row against the others. The tables' keys make these checks unnecessary.

        Raises:
            Inconsistent: a provider is its own ancestor.
        """
        fleet = cls()
        fleet._load_providers(providers)
        for name, records in inventories.items():
            fleet._inventories[name] = InventoryColumns.load(records)
        fleet._traits.load(traits)
        fleet._aggregates.load(aggregates)
        for name, (rows, amounts) in used.items():
            fleet._inventories.setdefault(name, InventoryColumns()).use_all(rows, amounts)
        fleet.groups = Groups.load(members, fleet.hosts_of)
        fleet.assigned = AssignedOnNodes.load(assignments)
        if owner_usages is not None:
            fleet.owner_usages = owner_usages
        return fleet

    # Copies

    def fork(self) -> "Fleet":
        """Return an independent fleet at the same version, for what-if queries."""
        other = self._copy()
        other.caches = {}
        other.meter = Meter()
        other.resource_classes = self.resource_classes.copy()
        other.traits = self.traits.copy()
        other.groups = self.groups.copy()
        other.assigned = self.assigned.copy()
        other.owner_usages = self.owner_usages.copy()
        other._inventories = {name: columns.copy() for name, columns in self._inventories.items()}
        other._traits = self._traits.copy()
        other._aggregates = self._aggregates.copy()
        return other

    def with_inventory_columns(self, resource_class: str, columns: InventoryColumns) -> "Fleet":
        """Return a view of this fleet with other inventories of one resource class, for what-if queries.

        The view shares all other data. Neither fleet may change while the view is in use.
        """
        other = self._shallow_copy()
        other.caches = {}
        other._inventories = {**self._inventories, resource_class: columns}
        return other

    # Changes

    def advance(self, version: int, changes: Iterable[Change], at: float) -> None:
        """Apply one commit, made at ``at`` (seconds since the epoch), or nothing of it.

        Raises:
            Inconsistent: ``version`` is not the next one, or a change contradicts the fleet.
            ProviderNotFound: a change names a provider that does not exist.
        """
        if version != self.version + 1:
            raise Inconsistent(f"commit {version} does not follow version {self.version}")
        applied: list[Change] = []
        try:
            for change in changes:
                self.apply(change)
                applied.append(change)
        except FleetError:
            self.undo(applied)
            raise
        self.settle(version, applied, at)

    def settle(self, version: int, changes: Iterable[Change], at: float) -> None:
        """Make the changes applied last the commit ``version``. ``at``: its time, seconds since the epoch."""
        for change in changes:
            uuid = getattr(change, "provider", None)
            if uuid is not None and uuid in self._row_of:
                self.changed_at[self._row_of[uuid]] = at
        self.version = version

    def undo(self, changes: Sequence[Change]) -> None:
        """Undo the changes applied last, given in the order in which they were applied."""
        for change in reversed(changes):
            self.apply(inverse(change))

    def apply(self, change: Change) -> None:
        """Apply one change, all of it or nothing.

        Raises:
            Inconsistent: the fact before the change is not what the fleet has.
            ProviderNotFound: the change names a provider that does not exist.
        """
        match change:
            case AllocationsChanged():
                self._apply_consumer(change)
            case GenerationChanged():
                row = self.row(change.provider)
                _expect(f"generation of {change.provider}", self.generation.item(row), change.before)
                self.generation[row] = change.after
            case ProviderChanged():
                self._apply_provider(change)
            case InventoryChanged():
                row = self.row(change.provider)
                self.invalidations.append(row)
                if change.before.keys() != change.after.keys():
                    self.reshaped.append(row)
                _expect(f"inventory of {change.provider}", self.inventories(row), change.before)
                for name in change.before:
                    if name not in change.after:
                        self._inventories[name].remove(row)
                for name, inventory in change.after.items():
                    if change.before.get(name) != inventory:
                        self._inventories.setdefault(name, InventoryColumns()).put(row, inventory)
            case TraitsChanged():
                row = self.row(change.provider)
                self._reshape(row)
                _expect(f"traits of {change.provider}", self.traits_of(row), change.before)
                self._traits.replace(row, change.after)
                if len(self.groups) and (SHARING_TRAIT in change.before) != (SHARING_TRAIT in change.after):
                    self.groups.recount(self.hosts_of)
            case AggregatesChanged():
                row = self.row(change.provider)
                self._reshape(row)
                _expect(f"aggregates of {change.provider}", self.aggregates_of(row), change.before)
                self._aggregates.replace(row, change.after)
            case ResourceClassChanged():
                _renumber(self.resource_classes, change)
            case TraitChanged():
                _renumber(self.traits, change)
            case WordAnnounced():
                _expect("the operator's word", self.word, change.before)
                self.word = change.after

    def _apply_consumer(self, change: AllocationsChanged) -> None:
        before, after = change.before, change.after
        had = None if before is None else before.assignment
        has = None if after is None else after.assignment
        assigns = had is not has and had != has
        if assigns:
            self.assigned.check(change.consumer, had, has)
        group = None if before is None else before.group
        joins = None if after is None else after.group
        if group is None and joins is None:
            self._apply_allocations(change.held, change.holds)
        else:
            self._apply_member(change, group, joins)
        if assigns:
            self.assigned.change(change.consumer, had, has)
            for node in {each.node for each in (had, has) if each is not None}:
                if (row := self.find_row(node)) >= 0:
                    self.invalidations.append(row)
        self.owner_usages.apply(change)

    def _apply_member(self, change: AllocationsChanged, before: str | None, after: str | None) -> None:
        """Apply the change of a consumer that moves from server group ``before`` to ``after``."""
        holds = [self.row(uuid) for uuid in change.holds]
        self.groups.check(before, change.consumer, [self.row(uuid) for uuid in change.held], after)
        self._apply_allocations(change.held, change.holds)
        self.groups.move(change.consumer, before, after, holds, self.hosts_of)

    def _apply_allocations(self, before: Allocations, after: Allocations) -> None:
        """Subtract a consumer's allocations before a change from the use, and add those after it."""
        if not before:
            # The common case, a new consumer: added use cannot contradict the fleet.
            for row, resources in [(self.row(uuid), resources) for uuid, resources in after.items()]:
                for name, amount in resources.items():
                    self._use(row, name, amount)
                self.invalidations.append(row)
            return
        difference: dict[tuple[int, str], int] = {}
        for uuid, resources in before.items():
            row = self.row(uuid)
            for name, amount in resources.items():
                used = self.inventory_columns(name).used_by(row)
                if used < amount:
                    raise Inconsistent(f"{uuid} has {used} {name} in use: {amount} cannot be freed")
                difference[row, name] = -amount
        for uuid, resources in after.items():
            row = self.row(uuid)
            for name, amount in resources.items():
                difference[row, name] = difference.get((row, name), 0) + amount
        for (row, name), amount in difference.items():
            if amount:
                self._use(row, name, amount)
                self.invalidations.append(row)

    def _use(self, row: int, resource_class: str, amount: int) -> None:
        columns = self._inventories.get(resource_class)
        if columns is None:
            columns = self._inventories[resource_class] = InventoryColumns()
        columns.use(row, amount)

    def _apply_provider(self, change: ProviderChanged) -> None:
        uuid, before, after = change.provider, change.before, change.after
        if before is None:
            if after is None:
                raise Inconsistent(
                    f"the change of resource provider {uuid} has neither a before nor an after"
                )
            self._create(change.row, uuid, after)
            return
        row = self.row(uuid)
        _expect(f"row of {uuid}", row, change.row)
        _expect(f"resource provider {uuid}", self.facts(row), before)
        if after is not None:
            self._update(row, after)
            if len(self.groups) and after.parent != before.parent:
                self.groups.recount(self.hosts_of)
        elif self._is_bare(row):
            self._delete(row)
        else:
            raise Inconsistent(f"resource provider {uuid} still has children, inventory or use")


def _renumber(ids: dict[str, int], change: ResourceClassChanged | TraitChanged) -> None:
    _expect(f"id of {change.name}", ids.get(change.name), change.before)
    if change.after is not None:
        ids[change.name] = change.after
    elif change.before is not None:
        del ids[change.name]


def _expect(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Inconsistent(f"{what} is {actual}, not {expected}")
