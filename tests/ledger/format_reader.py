"""A reader of the ledger's database by docs/format.md alone: the executable form of that page.

    python format_reader.py FILE             check the database; print which positions can be rebuilt
    python format_reader.py FILE POSITION    print the state at a position, as JSON

It imports nothing of Roost, and nothing beside the standard library.
"""

import json
import sqlite3
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

REVISION = "0008"
NEW_MEMBERS = {"group": None, "assignment": None}  # of consumers in commits from before 0006 and 0007
LIMITS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
OWNER = ("uuid", "project_id", "user_id", "generation", "consumer_type", "group")

NAMES = {
    "resource_class": "SELECT name, id FROM resource_classes",
    "trait": "SELECT name, id FROM traits",
    "word": "SELECT '', mark FROM operator_word",
}
PROVIDER = "LEFT JOIN resource_providers p ON p.id = provider_id"
CLASS = "LEFT JOIN resource_classes c ON c.id = resource_class_id"
PROVIDERS = """SELECT p.uuid, p.id, p.name, p.generation, iif(p.parent_id IS NULL, '', above.uuid)
    FROM resource_providers p LEFT JOIN resource_providers above ON above.id = p.parent_id"""
INVENTORIES = f"SELECT p.uuid, c.name, {', '.join(LIMITS)} FROM inventories {PROVIDER} {CLASS}"
TRAITS = f"SELECT p.uuid, t.name FROM provider_traits {PROVIDER} LEFT JOIN traits t ON t.id = trait_id"
AGGREGATES = f"SELECT p.uuid, aggregate_uuid FROM provider_aggregates {PROVIDER}"
CONSUMERS = f"SELECT {', '.join(OWNER[:5])}, server_group, assignment FROM consumers"
ALLOCATIONS = f"""SELECT o.uuid, p.uuid, c.name, used
    FROM allocations LEFT JOIN consumers o ON o.id = consumer_id {PROVIDER} {CLASS}"""

Fact = tuple[str, str]  # its kind, and the name of the thing that has it
State = dict[Fact, Any]  # None: there is no such thing, or its set is empty


class Unreadable(ValueError):
    """The database, or a commit, is not of the format that this reader knows."""


class Reader:
    """One snapshot of a database. ``wrong``: the faults met so far, by the thing where each was met first."""

    def __init__(self, path: object) -> None:
        self.db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
        self.db.execute("BEGIN")
        [(revision,)] = self.db.execute("SELECT version_num FROM ledger_schema")
        of, oldest = revision, revision
        if revision > REVISION:
            [(works_from,)] = self.db.execute("SELECT works_from FROM ledger_schema")
            of, _, oldest = (works_from or "").partition(" ")
        if of != revision or not oldest <= REVISION <= revision:
            raise Unreadable(f"the tables are at revision {revision}, this reader knows {REVISION}")
        [identity] = self.db.execute("SELECT uuid, incarnation FROM database_identity")
        self.history = "{}.{}".format(*identity)
        self.wrong: dict[Fact, str] = {}
        seqs = [seq for (seq,) in self.db.execute("SELECT seq FROM commits ORDER BY seq")]
        after_gaps = [later for earlier, later in pairwise(seqs) if later != earlier + 1]
        self.wrong |= {("commits before", str(seq)): "commit-gap" for seq in after_gaps}
        self.head = seqs[-1] if seqs else 0
        self.earliest = [1, *seqs[:1], *after_gaps][-1] - 1
        self.tables = self._tables()

    def at(self, position: int) -> State:
        """The state at a position: that of the tables, with all later commits undone."""
        if not self.earliest <= position <= self.head:
            raise Unreadable(f"positions {self.earliest} to {self.head} can be rebuilt, not {position}")
        state = self.tables.copy()
        for seq in range(self.head, position, -1):
            self._undo(state, seq)
        return {key: fact for key, fact in state.items() if fact is not None}

    def check(self) -> dict[Fact, str]:
        """Undo all commits, apply them again, and return all faults."""
        state, at = self.tables.copy(), self.head
        try:
            while at > self.earliest:
                self._undo(state, at)
                at -= 1
        except Unreadable:
            self.wrong["commit", str(at)] = "commit-unreadable"
        if at == 0:
            left = [key for key, fact in state.items() if fact is not None]
            self.wrong = dict.fromkeys(left, "unexplained") | self.wrong
            state = {}
        for change in (change for seq in range(at + 1, self.head + 1) for change in self._changes(seq)):
            state |= facts(change, "after")
        differing = [key for key in state | self.tables if state.get(key) != self.tables.get(key)]
        self.wrong = dict.fromkeys(differing, "state-differs") | self.wrong
        return self.wrong

    def _undo(self, state: State, seq: int) -> None:
        for change in reversed(self._changes(seq)):
            for key, fact in facts(change, "after").items():
                if state.get(key) != fact:
                    self.wrong.setdefault(key, "state-differs")
            state |= facts(change, "before")

    def _changes(self, seq: int) -> list[dict[str, Any]]:
        [(text,)] = self.db.execute("SELECT changes FROM commits WHERE seq = ?", (seq,))
        try:
            changes = json.loads(text)
            for change in changes:
                facts(change, "before"), facts(change, "after")
        except (LookupError, TypeError, ValueError) as error:
            raise Unreadable(f"commit {seq}: {error!r}") from error
        return changes

    def _tables(self) -> State:
        state: State = {}
        for kind, query in NAMES.items():
            state |= {(kind, name): number for name, number in self._rows(query)}
        for uuid, row, name, generation, parent in self._rows(PROVIDERS, True):
            state["provider", uuid] = {"row": row, "name": name, "parent": parent or None}
            state["generation", uuid] = generation
        for uuid, name, *limits in self._rows(INVENTORIES):
            state.setdefault(("inventory", uuid), {})[name] = dict(zip(LIMITS, limits, strict=True))
        for kind, query in (("traits", TRAITS), ("aggregates", AGGREGATES)):
            for uuid, name in self._rows(query):
                state[kind, uuid] = sorted([*state.get((kind, uuid), ()), name])
        held: dict[str, dict[str, dict[str, int]]] = {}
        for consumer, uuid, name, used in self._rows(ALLOCATIONS):
            held.setdefault(consumer, {}).setdefault(uuid, {})[name] = used
        for *owner, assignment in self.db.execute(CONSUMERS):
            consumer = dict(zip(OWNER, owner, strict=True), holds=held.get(owner[0], {}))
            consumer["assignment"] = None if assignment is None else json.loads(assignment)
            state["allocations", owner[0]] = consumer
            if not consumer["holds"]:
                self.wrong["holdings", owner[0]] = "empty-consumer"
        return state

    def _rows(self, query: str, keep: bool = False) -> Iterator[tuple[Any, ...]]:
        for row in self.db.execute(query):
            if None in row:
                self.wrong["row", str(row)] = "broken-reference"
            if None not in row or keep:
                yield row


def facts(change: dict[str, Any], side: str) -> State:
    """The facts on one side of a change, "before" or "after"."""
    kind, fact = change["type"], change[side]
    match kind:
        case "provider":
            about = fact and {"row": change["row"], "name": fact["name"], "parent": fact["parent"]}
            generation = fact and fact["generation"]
            return {(kind, change["provider"]): about, ("generation", change["provider"]): generation}
        case "generation" | "inventory" | "traits" | "aggregates":
            return {(kind, change["provider"]): None if fact in ({}, []) else fact}
        case "allocations":
            holds = change["held" if side == "before" else "holds"]
            return {(kind, change["consumer"]): fact and {**NEW_MEMBERS, **fact, "holds": holds}}
        case "resource_class" | "trait":
            return {(kind, change["name"]): fact}
        case "word":
            return {(kind, ""): fact or None}
    raise ValueError(f"a change of the unknown kind {kind}")


def main(path: str, position: str | None = None) -> int:
    reader = Reader(path)
    if position is not None:
        for (kind, name), fact in sorted(reader.at(int(position)).items()):
            print(kind, name, json.dumps(fact))
        return 0
    wrong = reader.check()
    print(f"history {reader.history}, positions {reader.earliest} to {reader.head}")
    for (what, name), kind in wrong.items():
        print(f"{kind}: {what} {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
