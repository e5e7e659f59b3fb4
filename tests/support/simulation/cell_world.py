"""One cell in simulated time. Instances arrive as the super conductor hands them over, in one moment."""

from typing import Any

from roost.model.instance import ASSIGNED, Instance
from roost.scheduler.errors import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.deletions import DeleteInstances
from support.clouds import spec
from support.simulation.world import World

CELL = "c1"
DATABASE = f"cell/{CELL}"


class CellWorld(World):
    """A cell with two conductors and three hosts, and some instances that come and go."""

    def __init__(self, *arguments: Any, instances: int = 4, **named: Any) -> None:
        super().__init__(*arguments, cells=(CELL,), **named)
        self._arrivals = [f"instance{number}" for number in range(instances)]
        self._gone: set[str] = set()

    def plan(self) -> None:
        for uuid in self._arrivals:
            at = self.random.uniform(0.0, self.kind.seconds / 2)
            self.loop.after(at, self.arrive, uuid)
            if self.random.random() < self.kind.deletes:
                self.loop.after(at + self.random.choice((0.0, 0.1, 1.0, 8.0, 20.0)), self.delete, uuid)

    def arrive(self, uuid: str) -> None:
        """The super conductor hands an instance over."""
        if uuid in self._gone or not self.network.databases[DATABASE].up:
            return
        try:
            [placed] = self.placement.select(HostRequest(spec(1), (uuid,), 2, 1, {}))
        except NoValidHost:
            return
        self.network.note("user", "has", uuid, "put on", placed.selected.host)
        instance = Instance(
            uuid=uuid,
            request_id="request",
            run=placed.run,
            project_id="project",
            user_id="user",
            flavor="flavor",
            state=ASSIGNED,
            host=placed.selected.host,
            node=placed.selected.node,
            attempt=1,
            alternates=placed.alternates,
            spec=spec(1),
            selection=placed.selected,
            epoch=1,
        )
        self.network.databases[DATABASE].run(AddInstances((instance,), self.loop.now), True)
        self.accepted.add(uuid)

    def delete(self, uuid: str) -> None:
        """The user deletes an instance."""
        if not self.network.databases[DATABASE].up:
            return
        self.network.note("user", "deletes", uuid)
        self.network.databases[DATABASE].run(DeleteInstances((uuid,), self.loop.now, CELL), True)
        self._gone.add(uuid)
        if uuid in self.accepted:
            self.deleted.add(uuid)
