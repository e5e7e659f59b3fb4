"""Checks of `roost conductor` and `roost cell-conductor`: their databases and the services that they call."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx

from roost.cli.doctor.check import ANSWER_SECONDS, Deployment, DoctorCheck, DoctorVerdict
from roost.cli.doctor.database import clock_of
from roost.cli.doctor.scheduler import at_revision, check_cell, check_placement, check_records
from roost.model.errors import OperatorError
from roost.model.text import fault_of
from roost.server.options import ConductingOptions, read_conducting_options
from roost.server.programs import check_options
from roost.state.api_database.cell_mappings import CELL0, CellMapping, section_of
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.tables import SCHEMA as CONDUCTOR_SCHEMA
from roost.storage import Database
from roost.web.auth import IdentityUnavailable

if TYPE_CHECKING:
    from roost.web.auth.keystone_credentials import ClientOptions


def check_conductor(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the options of the conductor are valid, and all of its databases configured."""
    check_options("conductor" if deployment.cell is None else "cell-conductor", _options(deployment))
    yield DoctorVerdict("ok", "the conductor's options are valid")


def check_databases(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check the API database and the cells': they answer, have this program's tables, and the right time."""
    options = _options(deployment)
    api_url = options.api_database
    if deployment.cell is not None:
        yield from check_cell(deployment, CellMapping(deployment.cell, section_of(deployment.cell)))
    if api_url is None:
        return
    try:
        api = Database(api_url, read_only=True, answer_seconds=ANSWER_SECONDS)
    except OperatorError as error:
        yield DoctorVerdict(
            "fail", str(error), "start the API database, or correct [api_database] connection"
        )
        return
    try:
        if (verdict := at_revision(api, CONDUCTOR_SCHEMA, "the API database")) is not None:
            yield verdict
            return
        clock = clock_of(api, "the API database")
        cells = asyncio.run(Requests(api).cells())
    finally:
        asyncio.run(api.close())
    yield DoctorVerdict("ok", f"the API database names {len(cells)} cells")
    if clock is not None:
        yield clock
    if deployment.cell is not None:
        if deployment.cell not in cells:
            says = f"the API database does not know the cell {deployment.cell}"
            yield DoctorVerdict("warn", says, f"run 'roost cell add {deployment.cell}'")
        return
    for mapping in {CELL0: CellMapping(CELL0, section_of(CELL0)), **cells}.values():
        yield from check_cell(deployment, mapping)


def check_service(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that a scheduler over HTTP answers and is ready."""
    options = _options(deployment)
    if not options.uses_service:
        yield DoctorVerdict("skip", "not checked: the conductor decides itself")
        return
    # Imported only here: this import takes as long as all others together.
    from roost.scheduler.client.http import GROUP, SERVICE_TYPE
    from roost.web.auth.keystone_credentials import read_client_options

    client = read_client_options(options.source, GROUP, SERVICE_TYPE)
    change = f"start the scheduler, or correct [{GROUP}]"
    try:
        url, status = asyncio.run(_ask(client))
    except (httpx.HTTPError, IdentityUnavailable, OSError) as error:
        yield DoctorVerdict("fail", f"the scheduler: {type(error).__name__}: {fault_of(error)}", change)
        return
    if status == httpx.codes.OK:
        yield DoctorVerdict("ok", f"the scheduler at {url} is ready")
    else:
        yield DoctorVerdict("fail", f"the scheduler at {url} answers /readyz with status {status}", change)


async def _ask(options: "ClientOptions") -> tuple[str, int]:
    url = (await options.credentials.access()).url.rstrip("/")
    async with httpx.AsyncClient(verify=options.verify, timeout=ANSWER_SECONDS) as client:
        return url, (await client.get(f"{url}/readyz")).status_code


def _options(deployment: Deployment) -> ConductingOptions:
    return read_conducting_options(deployment.source, deployment.cell)


CHECKS = (
    DoctorCheck("conductor", check_conductor),
    DoctorCheck("conductors' databases", check_databases),
    DoctorCheck("placement over HTTP", check_placement),
    DoctorCheck("scheduler over HTTP", check_service),
    DoctorCheck("records", check_records),
)
