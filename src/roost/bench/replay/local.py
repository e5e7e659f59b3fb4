"""A workload through a whole system in this process: its options, its data directory, its verification."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from roost.agent.drivers.simulated import FailureRule, Script
from roost.bench.replay import openb
from roost.bench.replay.runner import WorkloadReplay, layout_of
from roost.bench.replay.state import ReplayState, UsageSamples, open_state, save_state
from roost.bench.replay.summary import Summary
from roost.bench.replay.workload import Workload
from roost.cli.progress import ProgressMeter, progress
from roost.cli.verification import Verified, verify_database
from roost.ledger.findings import Finding
from roost.process.garbage_collection import keep_what_is_loaded
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.weighers.fragmentation import FragmentationOptions, FragmentationWeigher
from roost.server.all_in_one.data_directory import API_DB, locked, only_in_directory
from roost.server.all_in_one.system import System, SystemOptions, read_system_options


class FinishedReplay(NamedTuple):
    """A finished replay, and the differences that the verification of its databases has found."""

    summary: Summary
    samples: UsageSamples
    findings: Sequence[Finding]
    verified: Verified


class LocalReplay:
    """Replays of one workload, each in a system of its own.

    Args:
        workload: the hosts and requests. ``cells``: the number of cells.
        failure_rate: share of builds that fail, from 0 to 1.
        seed: of all random numbers.
        speed: virtual seconds for each second of real time; None: as fast as possible.
        inflated: how far the pods of openb were multiplied; None: they were not.
        typical: the folder of the openb trace whose pods are the typical requests of FragmentationWeigher, by
            which alone hosts are weighed; None: hosts are weighed by the options.
    """

    def __init__(
        self,
        workload: Workload,
        cells: int,
        failure_rate: float,
        seed: int,
        speed: float | None = None,
        inflated: float | None = None,
        typical: Path | None = None,
    ) -> None:
        self.workload = workload
        self._cells, self._failure_rate, self._seed, self._speed = cells, failure_rate, seed, speed
        self._inflated, self._typical = inflated, typical

    @property
    def title(self) -> str:
        """The title of a plot."""
        hosts = f"{len(self.workload.hosts):,} hosts in {self._cells} cells"
        return f"{self.workload.name}: {hosts}, {self._failure_rate:.0%} of builds fail"

    def options(self, source: Source, into: Path) -> SystemOptions:
        """Return the options of a replay in a data directory. Raises: `OperatorError`."""
        script = Script(
            failures=(FailureRule(self._failure_rate),) if self._failure_rate else (), seed=self._seed
        )
        options = read_system_options(only_in_directory(source, into), script=script, seed=self._seed)
        # A replay counts refusals by their plain reason, and measures decisions.
        scheduler = msgspec.structs.replace(options.scheduler, explain_seconds=0.0)
        return msgspec.structs.replace(options, scheduler=scheduler)

    def run(
        self, source: Source, into: Path, step: str = "", *, fresh: bool = False, keep_finished: bool = False
    ) -> FinishedReplay:
        """Run the workload, or what an interrupted replay has left of it, and verify the databases.

        ``step``: the name of the replay in its progress, by default that of the workload. ``fresh``: replace
        an unfinished replay. ``keep_finished``: run a finished replay with the same options not again.

        Raises: `OperatorError`, among them `ReplayError`.
        """
        step = step or self.workload.name
        options = self.options(source, into)
        configure_logs(options.logs)
        with locked(into):
            if self._typical is not None:
                scheduler = _by_fragmentation(options.scheduler, self._typical, into)
                options = msgspec.structs.replace(options, scheduler=scheduler)
            state = open_state(into, self._parameters(source, options), fresh, keep_finished=keep_finished)
            save_state(into, state)
            with progress(step) as meter:
                summary = asyncio.run(self._run(into, options, state, step, meter))
                meter.begin("verify", "commits")
                findings, _, verified = asyncio.run(
                    verify_database(f"sqlite:///{into.resolve() / API_DB}", meter.count)
                )
        return FinishedReplay(summary, state.samples, findings, verified)

    def _parameters(self, source: Source, options: SystemOptions) -> dict[str, str]:
        workload = self.workload
        given = (*source.files, *(f"{each.group}.{each.option}={each.value}" for each in source.settings))
        return {
            "workload": workload.name,
            "bins": str(len(workload.bins)),
            "hosts": str(len(workload.hosts)),
            "instances": str(workload.instances),
            "cells": str(self._cells),
            "failure rate": str(self._failure_rate),
            "max attempts": str(options.max_attempts),
            "weighers": ", ".join(options.scheduler.weighers),
            "options": ", ".join(given),
            "inflated": str(self._inflated),
            "seed": str(self._seed),
        }

    async def _run(
        self, into: Path, options: SystemOptions, state: ReplayState, step: str, meter: ProgressMeter
    ) -> Summary:
        workload = self.workload
        system = await System.open(into, layout_of(workload, self._cells), options)
        system.report().on_signal()
        keep_what_is_loaded()
        try:
            bins = len(workload.bins)
            meter.begin(step, "bins", state.next_bin, bins)
            running = WorkloadReplay(workload, system, state, self._seed, self._speed)

            def on_bin(done: int) -> None:
                counts = state.counts
                detail = f"{counts.placed:,} placed, {counts.refused:,} refused, {counts.failed:,} failed"
                meter.show(step, "bins", done, bins, detail)

            return await running.run(on_bin)
        finally:
            await system.close()


def _by_fragmentation(options: SchedulerOptions, trace: Path, into: Path) -> SchedulerOptions:
    """Return the scheduler's options with only the weigher of fragmentation, for the pods of a trace."""
    file = into / "typical-requests.json"
    file.write_bytes(msgspec.json.encode(openb.typical_requests(trace)))
    own = FragmentationOptions(openb.GPU, str(file))
    return msgspec.structs.replace(
        options,
        weighers=(FragmentationWeigher.name,),
        plugins={**options.plugins, FragmentationWeigher.name: own},
    )
