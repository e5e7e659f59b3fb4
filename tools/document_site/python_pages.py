"""The classes and functions that a program may use, by subject; autodoc fills in their docstrings."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from document_site.markdown import SitePage, heading, table, toctree

FOLDER = "reference/python"

_INDEX = """\
Names that a program may import: to use the scheduler by itself, to call services, to write filters, weighers
and drivers of hosts. All else may change with any version.
[The project's page](../../project.md#use-the-scheduler-by-itself) has a complete program.
"""


class PythonSubject(NamedTuple):
    """A page about some names. ``names``: their import paths, in the order of the page."""

    name: str
    title: str
    about: str
    names: Sequence[str]


SUBJECTS: Final = (
    PythonSubject(
        "scheduler",
        "Scheduler",
        "From a request to claimed hosts, and its errors.",
        (
            "roost.scheduler.Scheduler",
            "roost.scheduler.HostRequest",
            "roost.scheduler.SchedulerOptions",
            "roost.scheduler.SchedulerError",
            "roost.scheduler.NoValidHost",
        ),
    ),
    PythonSubject(
        "requests",
        "Requests and destinations",
        "The values that go into the scheduler and come out of it.",
        (
            "roost.model.spec.RequestSpec",
            "roost.model.spec.Flavor",
            "roost.model.spec.Image",
            "roost.model.spec.ServerGroup",
            "roost.model.spec.Destination",
            "roost.model.spec.Selection",
            "roost.model.reasons.Reasons",
            "roost.model.what_if.WhatIf",
        ),
    ),
    PythonSubject(
        "hosts",
        "Hosts",
        "The reports of compute nodes, and the pool of hosts that a run may choose from.",
        (
            "roost.scheduler.nodes.NodeTable",
            "roost.model.node.NodeReport",
            "roost.scheduler.selection.host_pools.HostPools",
        ),
    ),
    PythonSubject(
        "gateways",
        "Gateways",
        "Where decisions are made and claims are written: in a ledger of the same process, or over HTTP.",
        (
            "roost.scheduler.gateways.Gateway",
            "roost.scheduler.gateways.local.LocalGateway",
            "roost.scheduler.gateways.http.HttpGateway",
        ),
    ),
    PythonSubject(
        "placement",
        "Placement",
        "Providers, inventories and allocations: on a ledger of this process, or over HTTP.",
        (
            "roost.placement.interface.Placement",
            "roost.placement.service.PlacementService",
            "roost.placement.client.HttpPlacement",
            "roost.placement.interface.Provider",
            "roost.model.inventory.Inventory",
            "roost.placement.errors.PlacementError",
        ),
    ),
    PythonSubject(
        "clients",
        "Client of the scheduler",
        "The scheduler of another process, with tokens and safe repetitions.",
        ("roost.scheduler.client.HttpScheduler",),
    ),
    PythonSubject(
        "ledger",
        "Ledger and databases",
        "The ordered commits of placement's state, and the databases that hold them.",
        (
            "roost.ledger.Ledger",
            "roost.ledger.Command",
            "roost.ledger.State",
            "roost.ledger.LedgerError",
            "roost.ledger.LedgerBusy",
            "roost.storage.Database",
        ),
    ),
    PythonSubject(
        "records",
        "Records",
        "The history of runs and attempts.",
        (
            "roost.records.RecordQueue",
            "roost.records.Retention",
            "roost.records.backend.open_sql_records",
            "roost.records.open_records",
            "roost.records.Records",
            "roost.records.SearchableRecords",
            "roost.records.Search",
            "roost.records.RunWithAttempts",
            "roost.model.record.Run",
            "roost.model.record.Attempt",
        ),
    ),
    PythonSubject(
        "plugins",
        "Plugins",
        "All members that a filter or a weigher may have, and the objects that it gets.",
        (
            "roost.scheduler.plugins.plugins.Plugin",
            "roost.scheduler.plugins.plugins.Filter",
            "roost.scheduler.plugins.plugins.Weigher",
            "roost.scheduler.plugins.plugins.Named",
            "roost.scheduler.plugins.plugins.Lack",
            "roost.scheduler.plugins.Looks",
            "roost.scheduler.candidates.candidate_source.HostView",
            "roost.scheduler.candidates.candidate_source.OneHost",
            "roost.scheduler.request.scheduling_request.SchedulingRequest",
            "roost.scheduler.request.scheduling_request.GroupPlacement",
            "roost.scheduler.request.keys.key.Key",
            "roost.process.options.OptionStruct",
            "roost.process.options.option",
        ),
    ),
    PythonSubject(
        "drivers",
        "Drivers of hosts",
        "The methods by which an agent uses a hypervisor, and the provider tree that a driver fills.",
        (
            "roost.agent.drivers.Driver",
            "roost.agent.drivers.CapableDriver",
            "roost.agent.drivers.PluggingDriver",
            "roost.agent.drivers.Hardware",
            "roost.agent.drivers.Attached",
            "roost.agent.drivers.AttachedPort",
            "roost.agent.drivers.AttachedDevice",
            "roost.agent.provider_tree.ProviderTree",
        ),
    ),
)


def python_pages() -> Iterator[SitePage]:
    """Yield the pages of all subjects, and their index."""
    rows = [(f"[{each.title}]({each.name}.rst)", each.about) for each in SUBJECTS]
    contents = toctree((each.title, each.name) for each in SUBJECTS)
    yield SitePage(
        f"{FOLDER}/index.md", "\n".join((heading(1, "Python"), _INDEX, table(("", ""), rows), contents))
    )
    for each in SUBJECTS:
        yield SitePage(f"{FOLDER}/{each.name}.rst", _page(each))


def _page(subject: PythonSubject) -> str:
    title = f"{subject.title}\n{'=' * len(subject.title)}\n\n{subject.about}\n\n.. highlight:: python\n"
    return "\n".join((title, *map(_entry, subject.names)))


def _entry(path: str) -> str:
    directive = "autoclass" if path.rpartition(".")[2][0].isupper() else "autofunction"
    return f".. {directive}:: {path}\n"
