"""Options of configuration files: their groups, the commands that read each, and options without effect."""

import importlib
import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import click
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.placement.options import GROUPS, unsupported_options
from roost.placement.unsupported import groups_in
from roost.process.option_source import Setting, Source
from roost.process.options import options_by_group, options_of_group
from roost.state.api_database.cell_mappings import CELL0, section_of

_SERVES: Set[str] = {
    "DEFAULT", "api", "cors", "healthcheck", "keystone_authtoken", "ledger", "oslo_middleware", "oslo_policy",
    "overload", "placement", "placement_database", "profiler", "tracing",
}  # fmt: skip
_DECIDES: Set[str] = {
    "accelerators", "api_database", "compute", "failure_domain_weigher", "filter_scheduler",
    "fragmentation_weigher", "metrics", "pci", "records", "scheduler", "workarounds",
}  # fmt: skip
_CONDUCTS: Set[str] = {"conductor", "cyborg", "maintenance", "neutron", "scheduler_service"}
_CELLS: Set[str] = {CELL0, section_of("NAME")}
_DRIVERS: Set[str] = {"libvirt", "redfish", "simulated"}

READ_GROUPS: Mapping[str, Set[str]] = {
    "agent": {"DEFAULT", "agent", "cyborg", "neutron", "placement", "tracing", *_DRIVERS},
    "cell-conductor": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS},
    "conductor": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS},
    "dashboard": {*_SERVES, *_DECIDES, *_CELLS, "dashboard"},
    "db": {
        "api_database",
        "neighbours",
        "nova_bridge",
        "placement",
        "placement_database",
        "records",
        *_CELLS,
    },
    "neighbours": {*_SERVES, "neighbours"},
    "nova-scheduler": {*_SERVES, *_DECIDES, "database", "neutron", "nova_bridge"},
    "scheduler": {*_SERVES, *_DECIDES},
    "serve": _SERVES,
    "token": {"DEFAULT", "api", "oslo_policy"},
    "up": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS, "dashboard"},
}
"""Command -> groups that it reads. ``cell_NAME`` stands for the groups of all cells."""


def placement_source(config_files: tuple[str, ...], settings: tuple[str, ...]) -> Source:
    """Return the source of options that ``--config-file`` and ``--set`` make.

    Without a file it is the one in the folder that upstream's OS_PLACEMENT_CONFIG_DIR names, if that is set.

    Raises:
        OperatorError: A setting has a wrong form.
    """
    folder = os.environ.get("OS_PLACEMENT_CONFIG_DIR", "").strip()
    default = (str(Path(folder) / "placement.conf"),) if folder else ()
    files = tuple(str(Path(each).expanduser()) for each in config_files or default)
    return Source(files, tuple(Setting.parse(each) for each in settings))


def check_settings(source: Source, command: str, driver: str | None = None) -> None:
    """Check that a command reads each option of its command line.

    ``driver``: the driver of an agent, which does not read the groups of other drivers.

    Raises:
        OperatorError: the command does not read one of the options.
    """
    for setting in source.settings:
        if reason := unread(command, setting.group, driver):
            raise OperatorError(f"--set {setting.group}.{setting.option} has no effect: {reason}")


def unread(command: str, group: str, driver: str | None = None) -> str | None:
    """Return why a command does not read a group; None if it does, or if no command has the group."""
    wanted = section_of("NAME") if group.startswith(section_of("")) else group
    if command == "agent" and wanted in _DRIVERS and driver in _DRIVERS and wanted != driver:
        return f"the driver {driver} does not read [{group}]"
    readers = [each for each, groups in READ_GROUPS.items() if wanted in groups]
    if not readers or command in readers:
        return None
    others = ", ".join(f"roost {each}" for each in readers)
    return f"roost {command} does not read [{group}]; it is read by {others}"


SYSTEM_GROUPS = {
    "agent": "roost.agent.options:AgentOptions",
    "api_database": "roost.state.api_database.tables:ApiDatabaseOptions",
    "conductor": "roost.server.options:ConductingOptions",
    "dashboard": "roost.dashboard.options:DashboardOptions",
    "libvirt": "roost.agent.drivers.libvirt.options:LibvirtOptions",
    "maintenance": "roost.conductor.maintenance.hook:MaintenanceOptions",
    "neighbours": "roost.server.neighbours.options:NeighbourOptions",
    "nova_bridge": "roost.nova.options:BridgeOptions",
    "records": "roost.records.backend:RecordOptions",
    "redfish": "roost.agent.drivers.redfish.options:RedfishOptions",
    "scheduler": "roost.server.options:SchedulingOptions",
    "simulated": "roost.agent.drivers.simulated_options:SimulatedOptions",
}
"""The groups of options that the Placement API does not use: group -> module and struct of its options.

The groups of filters and weighers are missing. The modules are imported when they are needed: importing the
scheduler takes a tenth of a start of the API.
"""


PLACEMENT = "placement"
"""The group with keystoneauth1's options, by which `roost scheduler` reaches placement over HTTP."""

SCHEDULER_SERVICE = "scheduler_service"
"""The group with keystoneauth1's options, by which conductors reach a scheduler over HTTP."""

CLIENTS = (PLACEMENT, SCHEDULER_SERVICE, "cyborg", "neutron")
"""The groups with only keystoneauth1's options. By the last two agents reach neighbours."""


def system_options() -> dict[str, list[cfg.Opt]]:
    """Return the options of `SYSTEM_GROUPS`, and those of the scheduler with its filters and weighers."""
    from roost.scheduler.configuration import all_options

    options = all_options()
    for path in SYSTEM_GROUPS.values():
        module, name = path.split(":")
        struct = getattr(importlib.import_module(module), name)
        for group, own in options_of_group(struct).items():
            options.setdefault(group, []).extend(own)
    return options


def options_without_effect(
    source: Source, auth_strategy: str | None = None, *, schedules: bool = False
) -> list[str]:
    """Return a line for each option that has no effect: it is unknown, or Roost does not support it.

    Commands may share a file, so an option that only another command uses counts as effective.

    Args:
        auth_strategy: the strategy with which the command checks tokens; None: it checks none.
        schedules: the command line may have options of the scheduler.

    Raises:
        OperatorError: such an option is on the command line, or a file cannot be read.
    """
    if not schedules and not unsupported_options(source, auth_strategy, dict.fromkeys(SYSTEM_GROUPS, ())):
        return []
    # Imported only here: this import takes as long as all others together.
    from roost.nova.options import NovaOptions
    from roost.web.auth.keystone_credentials import client_options

    groups = system_options()
    for group, each in options_by_group(NovaOptions).items():
        groups.setdefault(group, []).extend(each)
    for group in CLIENTS:
        groups.setdefault(group, []).extend(client_options(source, group))
    groups |= cell_sections(source)
    return unsupported_options(source, auth_strategy, groups)


def cell_sections(source: Source) -> Mapping[str, list[cfg.Opt]]:
    """Return the groups of files that may be sections of cells' databases, with their options."""
    from roost.state.api_database.cell_mappings import CELL0, cell_options, section_of

    names = {CELL0, *(group for group in groups_in(source) if group.startswith(section_of("")))}
    return {group: options for name in names for group, options in cell_options(name).items()}


def tell_options(source: Source, command: str, *, schedules: bool = False, driver: str | None = None) -> None:
    """Print a line for each option that has no effect, before anything else is read.

    A misspelt option often makes a start fail with an error that does not name the cause.

    Args:
        command: the command that reads the source, as in `READ_GROUPS`.
        schedules: as for `options_without_effect`.
        driver: the driver of an agent.

    Raises:
        OperatorError: an option of the command line has no effect, or a file cannot be read.
    """
    strategy = _auth_strategy(source)
    check_settings(source, command, driver)
    try:
        lines = options_without_effect(source, strategy, schedules=schedules)
    except OperatorError as error:
        try:
            # Keystone's options cannot be loaded. The error is raised when they are read.
            lines = options_without_effect(source, schedules=schedules)
        except OperatorError:
            raise error from None
    print_warnings(lines)


def _auth_strategy(source: Source) -> str | None:
    """Return the strategy with which tokens are checked; None if the option is invalid."""
    conf = source.open()
    try:
        source.register(conf, {"api": [each for each in GROUPS["api"] if each.dest == "auth_strategy"]})
        return str(conf.api.auth_strategy)
    except (OperatorError, cfg.Error, ValueError):
        return None


def print_warnings(lines: Sequence[str]) -> None:
    """Print lines to standard error."""
    for line in lines:
        click.echo(f"roost: {line}", err=True)


def warn_of_options(config_file: Path | str | None) -> None:
    """Print a line for each option of a file and the environment that has no effect."""
    print_warnings(options_without_effect(Source(() if config_file is None else (str(config_file),))))
