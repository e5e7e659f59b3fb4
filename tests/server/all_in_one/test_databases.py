"""A system on the databases that a configuration names, on each kind of server."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from roost.ledger import SCHEMA as LEDGER
from roost.model.instance import ACTIVE
from roost.model.inventory import Inventory
from roost.process.option_source import Source
from roost.server.all_in_one.data_directory import in_directory
from roost.server.all_in_one.layout import uniform_layout
from roost.server.all_in_one.system import System, SystemOptions, configured_cells, read_system_options
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.storage import Database
from support.databases import Servers
from support.systems import states, wanted

SECTIONS = {
    "placement_database": (LEDGER,),
    "api_database": (CONDUCTOR,),
    "cell0": (CELL,),
    "cell_north": (CELL,),
    "cell_south": (CELL,),
}
LAYOUT = uniform_layout(4, 2, {"VCPU": Inventory(4)}, names=("north", "south"))


def configuration(servers: Servers, kind: str, folder: Path, stack: ExitStack) -> Path:
    """Write a configuration with a database for each section, whose tables are there."""
    lines = []
    for section, schemas in SECTIONS.items():
        own = folder / section
        own.mkdir()
        url = stack.enter_context(servers.place(kind, own)).url
        database = Database(url)
        for schema in schemas:
            schema.upgrade(database)
        asyncio.run(database.close())
        lines.append(f"[{section}]\nconnection = {url.replace('%', '%%')}\n")
    path = folder / "roost.conf"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_a_system_works_on_configured_databases_and_goes_on_there(
    servers: Servers, kind: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    async def opened(source: Source, options: SystemOptions) -> System:
        return await System.open(data, LAYOUT, options)

    async def run(source: Source) -> None:
        options = read_system_options(source, configured_cells(source), heartbeat_seconds=0.5)
        assert options.configured == {"cell0", "north", "south"}
        system = await opened(source, options)
        try:
            await system.super_conductor.accept(wanted("first", 5))
            await system.settle()
        finally:
            await system.close()
        system = await opened(source, options)
        try:
            await system.super_conductor.accept(wanted("second", 5))
            await system.settle()
            assert set((await states(system)).values()) == {ACTIVE}
            assert len(await states(system)) == 10
            mappings = await system.requests.cells()
            assert {each.section for each in mappings.values()} == {"cell0", "cell_north", "cell_south"}
            await system.super_conductor.delete(["first-0", "second-1"])
            await system.settle()
            assert len(await states(system)) == 8
        finally:
            await system.close()
        assert not list(data.glob("api.db")) and not list(data.glob("cell*"))

    with ExitStack() as stack:
        path = configuration(servers, kind, tmp_path, stack)
        asyncio.run(run(in_directory(Source((str(path),)), data)))
