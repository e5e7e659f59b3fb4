"""One host's agent."""

from collections.abc import Collection

import structlog

from roost.agents.endpoint import CellEndpoint
from roost.agents.types import SessionKey
from roost.compute.drivers import Driver
from roost.compute.driving import DriverService
from roost.compute.errors import BuildFailed, ProvidersRefused
from roost.compute.hardware import Hardware
from roost.compute.keeping import LoadApplied, MemoryState
from roost.compute.provider_tree import provider_uuid
from roost.compute.reporting import report_providers
from roost.logs import RequestIds, serving
from roost.machine import Performer, Transactor
from roost.model.assignment import digest
from roost.model.instance import BuildResult, Instance
from roost.model.node import NodeInstance, NodeReport
from roost.model.text import error_text

_log = structlog.get_logger()


class Agent:
    """Looks after one host through its driver. It keeps nothing that matters: the cell's database says
    what should be here, the driver what is."""

    def __init__(self, host: str, cell: str, driver: Driver) -> None:
        self.host = host
        self.enabled = True
        self._cell = cell
        self._driver = driver
        self._driver_service = DriverService(driver)
        self._state = MemoryState()
        self._failed_builds = 0
        self._building: set[str] = set()

    @property
    def node(self) -> str:
        """The uuid of the host's root provider."""
        return provider_uuid(self.host)

    async def register(self, cell: CellEndpoint) -> None:
        """Bring placement in line with what the driver says that the host has.

        Raises `AgentProtocolError`, and `ProvidersRefused` with what placement refuses.
        """
        session = SessionKey(self.host, "", 0)
        services = {"cell": cell.ask, "driver": self._driver_service.ask, "state": self._state.ask}
        applied = await self._state.ask(LoadApplied(self.host))
        report = report_providers(session, self.host, applied, enabled=self.enabled)
        reported = await Performer(_no_database, services).run(report)
        if reported.refusals:
            raise ProvidersRefused("; ".join(reported.refusals))

    def health(self) -> NodeReport:
        """What the scheduler should know of the host."""
        # Before the guests: one that comes in between is listed as not counted yet.
        hardware = self._hardware()
        guests = sorted(self._reported_guests() | self._building)
        return NodeReport(
            host=self.host,
            node=self.node,
            cell=self._cell,
            enabled=self.enabled,
            instances={guest: _reported(guest, hardware) for guest in guests},
            num_instances=len(guests),
            num_io_ops=len(self._building),
            failed_builds=self._failed_builds,
            metrics=self._metrics(),
            numa_topology=None if hardware is None else hardware.numa_topology,
            pci_device_pools=() if hardware is None else hardware.pci_device_pools,
        )

    def _reported_guests(self) -> set[str]:
        """The instances on the host; none if the driver cannot tell: that must not stop the heartbeat."""
        try:
            return set(self._driver.guests())
        except Exception as error:
            _log.error("the driver cannot list its guests", host=self.host, error=error_text(error))
            return set()

    def _hardware(self) -> Hardware | None:
        """What the driver tells of cells and devices; nothing if it fails: then no claim is assigned any."""
        try:
            return self._driver.hardware()
        except Exception as error:
            _log.error("the driver cannot tell its hardware", host=self.host, error=error_text(error))
            return None

    def _metrics(self) -> dict[str, float]:
        """What the driver measures; nothing if it fails: a sensor must not take the host out of service."""
        try:
            return dict(self._driver.metrics())
        except Exception as error:
            _log.error("the driver has no metrics", host=self.host, error=error_text(error))
            return {}

    async def recover(self, running: Collection[Instance]) -> None:
        """After a start: ``running`` are the instances that the cell says run here."""
        await self._driver.recover(running)

    def guests(self) -> list[str]:
        """The instances that are on the host, built or half built."""
        return list(self._driver.guests())

    async def build(self, instance: Instance) -> BuildResult:
        """Build an instance; whatever goes wrong is the reason in the result."""
        with serving(RequestIds(instance.request_id)):
            self._building.add(instance.uuid)
            try:
                return await self._build(instance)
            finally:
                self._building.discard(instance.uuid)

    async def _build(self, instance: Instance) -> BuildResult:
        try:
            await self._driver.prepare(instance)
            await self._driver.start(instance)
        except BuildFailed as error:
            failure = error_text(error)
        except Exception as error:
            # A driver's own bug must not cost the instance its alternates.
            _log.exception("the driver failed", host=self.host, instance=instance.uuid)
            failure = f"{type(error).__name__}: {error_text(error)}"
        else:
            self._failed_builds = 0
            return BuildResult(instance.uuid, self.host, instance.attempt)
        self._failed_builds += 1
        return BuildResult(instance.uuid, self.host, instance.attempt, failure)

    async def destroy(self, instance: str) -> None:
        """Remove an instance from the host."""
        await self._driver.destroy(instance)


def _reported(guest: str, hardware: Hardware | None) -> NodeInstance:
    if hardware is None:
        return NodeInstance()
    assignment = hardware.counted.get(guest)
    return NodeInstance(assignment="" if assignment is None else digest(assignment))


def _no_database(name: str) -> Transactor:
    raise LookupError(f"an agent has no database {name}")
