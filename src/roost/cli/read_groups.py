"""The groups of options that each command reads; other groups on its command line are refused."""

from collections.abc import Mapping, Set

from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.state.api_database.cell_mappings import CELL0, section_of

_SERVES: Set[str] = {
    "DEFAULT", "api", "cors", "healthcheck", "keystone_authtoken", "ledger", "oslo_middleware", "oslo_policy",
    "overload", "placement", "placement_database", "profiler", "tracing",
}  # fmt: skip
_DECIDES: Set[str] = {
    "accelerators", "api_database", "compute", "failure_domain_weigher", "filter_scheduler",
    "fragmentation_weigher", "metrics", "pci", "records", "scheduler", "workarounds",
}  # fmt: skip
_CONDUCTS: Set[str] = {"conductor", "cyborg", "neutron", "scheduler_service"}
_CELLS: Set[str] = {CELL0, section_of("NAME")}
_DRIVERS: Set[str] = {"libvirt", "redfish", "simulated"}

READ_GROUPS: Mapping[str, Set[str]] = {
    "agent": {"DEFAULT", "agent", "cyborg", "neutron", "placement", "tracing", *_DRIVERS},
    "cell-conductor": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS},
    "conductor": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS},
    "db": {"api_database", "neighbours", "placement", "placement_database", "records", *_CELLS},
    "neighbours": {*_SERVES, "neighbours"},
    "scheduler": {*_SERVES, *_DECIDES},
    "serve": _SERVES,
    "token": {"DEFAULT", "api", "oslo_policy"},
    "up": {*_SERVES, *_DECIDES, *_CONDUCTS, *_CELLS},
}
"""Command -> groups that it reads. ``cell_NAME`` stands for the groups of all cells."""


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
