"""The parts of `roost nova-scheduler` beside its calls: an answer that is lost, and a boot that is built."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from roost.model.inventory import Inventory
from roost.model.record import ABANDONED, BUILT, PENDING
from roost.nova import attempts as attempts_module
from roost.nova.audit import rounds
from roost.nova.calls import NovaRefusal, SelectCall
from roost.nova.decisions import AnswerOptions, NovaDecisions
from roost.nova.instance_source import CellInstances
from roost.process.option_source import Source
from roost.records import Search, SearchableRecords
from roost.scheduler import Scheduler
from roost.server.nova_options import NovaSchedulerOptions, read_nova_options
from roost.server.process import Process
from roost.server.programs import COMMANDS, open_parts, part_named
from roost.state.leases import all_leases
from support.nova_clouds import EPOCH, NovaCloud, node_uuid
from support.nova_specs import flavor, request_spec
from support.nova_traces import action, buried, instance_uuid, placed, requested
from support.waiting import Deadline

PARTS = COMMANDS["nova-scheduler"].parts - {"nova_calls", "nova_service", "nova_shadow", "scheduler_api"}
"""Those that need no broker."""


def options_of(cloud: NovaCloud, folder: Path, more: str) -> NovaSchedulerOptions:
    nova, own = folder / "nova.conf", folder / "roost.conf"
    nova.write_text(
        f"[DEFAULT]\nhost = here\n[api_database]\nconnection = {cloud.urls['api']}\n"
        f"[database]\nconnection = {cloud.urls['cell0']}\n"
    )
    own.write_text(
        f"[nova_bridge]\nconnection = sqlite:///{folder / 'bridge.db'}\n{more}\n"
        f"[placement_database]\nconnection = sqlite:///{folder / 'placement.db'}\n"
        f"[records]\nconnection = sqlite:///{folder / 'records.db'}\n"
    )
    options = read_nova_options(Source(files=(str(nova), str(own))))
    for part in PARTS:
        part_named(part).prepare(options)
    return options


class Bridge:
    """An open bridge on a cloud with one host."""

    def __init__(self, cloud: NovaCloud, process: Process[NovaSchedulerOptions]) -> None:
        self.cloud = cloud
        self.process = process
        assert isinstance(process.scheduler, Scheduler)
        self.decide = NovaDecisions(
            process.scheduler,
            process.placement,
            process.records,
            CellInstances(process.nova_cells),
            AnswerOptions(),
            process.nova_feed,
            checked=False,
            filled=self._filled,
        )

    async def _filled(self, spec: Any) -> Any:
        return spec

    async def boot(self, name: str, host: str = "a", **more: Any) -> None:
        found = requested(self.cloud, name)
        call = SelectCall(request_spec(instance_uuid=found, **more), (found,), request_id=f"req-{name}")
        [[selected, *_]] = await self.decide(call)
        assert selected["nova_object.data"]["service_host"] == host

    async def put(self, node: str, name: str, memory_mb: int) -> None:
        """Put a host into placement."""
        await self.process.placement.ensure_provider(node, name)
        totals = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(memory_mb), "DISK_GB": Inventory(100)}
        await self.process.placement.set_inventories(node_uuid(name), totals)

    async def holds(self, name: str) -> bool:
        return await self.process.placement.allocations_of(instance_uuid(name)) is not None

    async def result(self, name: str) -> tuple[str, str | None]:
        assert await self.process.records.flush(10.0)
        backend = self.process.records.backend
        assert isinstance(backend, SearchableRecords)
        [found] = await backend.find(Search(instance=instance_uuid(name)))
        return found.attempts[0].result, found.attempts[0].reason


def on(cloud: NovaCloud, folder: Path, work: Callable[[Bridge], Awaitable[None]], more: str = "") -> None:
    options = options_of(cloud, folder, more)
    node = cloud.host("cell1", "a")

    async def run() -> None:
        async with AsyncExitStack() as stack:
            process = Process(options, PARTS, stack)
            await open_parts(process, PARTS)
            bridge = Bridge(cloud, process)
            await bridge.put(node, "a", 8192)
            await work(bridge)
            assert process.api is not None
            own = process.api
            held = [each.name for each in await own.read(all_leases()) if not each.vacant]
            assert held == (["audit"] if "audit" in process.sections else [])

    asyncio.run(run())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = Deadline(30.0)
    while not await condition():
        assert not deadline.passed
        await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(attempts_module, "POLL_SECONDS", 0.05)


def test_lost_answers_claim_is_freed_and_attempts_end(cloud: NovaCloud, tmp_path: Path) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.boot("lost")
        await bridge.boot("built")
        await bridge.boot("waiting")
        assert await bridge.result("built") == (PENDING, None)
        buried(cloud, "lost")
        placed(cloud, "built", "cell1", "a", launched_at=EPOCH)
        action(cloud, "cell1", "built", "create", request="req-built")

        async def ended() -> bool:
            return (await bridge.result("built"), (await bridge.result("lost"))[0]) == (
                (BUILT, None),
                ABANDONED,
            )

        async def freed() -> bool:
            # The report is the last step of a round.
            return bridge.process.sections["audit"]()["freed"] == 1

        await until(ended)
        await until(freed)
        assert [await bridge.holds(name) for name in ("lost", "built", "waiting")] == [False, True, True]
        sections = bridge.process.sections
        assert sections["attempts"]() == {"open": 1}
        assert sections["audit"]()["cells_unread"] == sections["audit"]()["unanswered_claims"] == {}

    on(cloud, tmp_path, work, "audit_seconds = 0.2\nfree_unanswered_claims = true")


def test_host_that_has_just_come_counts_before_a_request_is_refused(cloud: NovaCloud, tmp_path: Path) -> None:
    async def work(bridge: Bridge) -> None:
        large = flavor(memory_mb=16384)
        with pytest.raises(NovaRefusal):
            await bridge.boot("refused", flavor=large)
        bridge.process.nova_feed._renewed = -math.inf  # more than two seconds later
        await bridge.put(cloud.host("cell1", "b"), "b", 65536)
        await bridge.boot("placed", "b", flavor=large)
        assert await bridge.process.records.flush(10.0)
        backend = bridge.process.records.backend
        assert isinstance(backend, SearchableRecords)
        runs = {
            name: await backend.find(Search(instance=instance_uuid(name))) for name in ("refused", "placed")
        }
        assert {name: len(found) for name, found in runs.items()} == {"refused": 1, "placed": 2}

    on(cloud, tmp_path, work)


@pytest.mark.parametrize("more", ["audit_seconds = 0", "mode = shadow"])
def test_bridge_that_shall_not_audit_has_no_lease(cloud: NovaCloud, tmp_path: Path, more: str) -> None:
    async def work(bridge: Bridge) -> None:
        assert "audit" not in bridge.process.sections
        assert ("attempts" in bridge.process.sections) is ("shadow" not in more)

    on(cloud, tmp_path, work, more)
