"""Conductors and agents as processes, on hosts of the profiles of the simulated driver."""

import asyncio
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from roost.bench.postgresql import PostgreSQL
from roost.cli.verification import verify_database
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import SCHEMA as LEDGER
from roost.process.option_source import Source
from roost.records.tables import SCHEMA as RECORDS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database.tables import SCHEMA as CELL
from roost.storage import Database
from support.forked import Forked
from support.programs import write_config
from support.serving import ENVIRONMENT


class ProfiledCloud:
    """The databases of a conductor and of cell cell1's conductor on one server, and agents of hosts of some
    profile. ``sections``: what the configuration has beside the databases.

    Agents that run at the end of a ``with`` block are killed, so that a test that fails leaves nothing
    behind."""

    def __init__(self, folder: Path, server: PostgreSQL, **sections: str) -> None:
        self.folder = folder
        names = ("api", "records", "cell0", "cell1")
        self.urls = urls = {name: server.url(server.create_database()) for name in names}
        connections = {name: f"connection = {url}" for name, url in urls.items()}
        for schema, name in ((LEDGER, "api"), (CONDUCTOR, "api"), (RECORDS, "records"), (CELL, "cell0")):
            database = Database(urls[name])
            schema.upgrade(database)
            asyncio.run(database.close())
        database = Database(urls["cell1"])
        CELL.upgrade(database)
        asyncio.run(database.close())
        self.config = write_config(
            folder,
            placement_database=connections["api"],
            api_database=connections["api"],
            records=connections["records"],
            cell0=connections["cell0"],
            cell_cell1=connections["cell1"],
            **sections,
        )
        self.agents: list[Forked] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self.agents:
            agent.kill()
            agent.wait()

    def agent(self, endpoint: str, prefix: str, profile: str) -> tuple[Forked, Path]:
        """Start the agent of the simulated host ``PREFIX0001``; returns it and its log."""
        return self.agent_with(endpoint, prefix, f"simulated.profile={profile}")

    def agent_with(self, endpoint: str, prefix: str, *options: str) -> tuple[Forked, Path]:
        """Start the agent of the host ``PREFIX0001`` with some options; returns it and its log."""
        log = self.folder / f"agent-{len(self.agents) + 1}.log"
        values = ("agent.poll_seconds=1", "agent.retry_seconds=0.1", *options)
        settings = [part for each in values for part in ("--set", each)]
        command = ("--hosts", "1", "--host-prefix", prefix, "--state-dir", self.folder / "state")
        tokens = ("--token-file", self.folder / "tokens", "--endpoint", endpoint)
        with log.open("ab") as file:
            agent = Forked("agent", *command, *tokens, *settings, env=ENVIRONMENT, stderr=file)
        self.agents.append(agent)
        return agent, log

    def differences(self) -> list[object]:
        """What `roost db verify` finds."""
        source = Source([str(self.config)])
        findings, unread, _ = asyncio.run(verify_database(self.urls["api"], source=source))
        return [*findings, *unread]

    def held(self, instance: str, host: str) -> dict[str, dict[str, int]]:
        """What an instance holds, by what the name of a provider has after the host's. A bare metal node is
        called node."""
        # One snapshot: an agent may make a provider between the two reads, to which claims are moved.
        engine = sa.create_engine(self.urls["api"], poolclass=sa.NullPool, isolation_level="REPEATABLE READ")
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT uuid, name FROM resource_providers"))
            names = {row.uuid: row.name for row in rows}
            there = held_by_all(connection).get(instance)
        held = {} if there is None else there.allocations
        found = {}
        for uuid, amounts in held.items():
            suffix = "node" if names[uuid] == uuid else names[uuid].removeprefix(host).removeprefix("-")
            found["numa" if suffix.startswith("numa") else suffix] = dict(amounts)
        return found
