"""Loads drivers by name. Drivers of other packages are entry points."""

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from roost.agent.drivers import Driver
from roost.model.errors import OperatorError
from roost.process.option_source import Source

ENTRY_POINTS = "roost.agent.drivers"
"""The group of entry points. Each is a `DriverKind`."""

MakeDriver = Callable[[str, Path], Driver]
"""Makes the driver of a host from its name and a directory for the driver's own files."""

DriverKind = Callable[[Source], MakeDriver]
"""A kind of driver: reads its options from a source. Raises `OperatorError` for a wrong one."""

BUILT_IN = {
    "libvirt": "roost.agent.drivers.libvirt.options:libvirt_drivers",
    "redfish": "roost.agent.drivers.redfish.options:redfish_drivers",
    "simulated": "roost.agent.drivers.simulated_options:simulated_drivers",
}


def load_driver(name: str) -> DriverKind:
    """Return the driver of an entry point, or of MODULE:ATTRIBUTE. Raises `OperatorError`."""
    try:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            return entry.load()  # type: ignore[no-any-return]
        module, colon, attribute = BUILT_IN.get(name, name).partition(":")
        if colon:
            return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise OperatorError(f"the driver {name} cannot be loaded: {error}") from error
    known = sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
    raise OperatorError(f"there is no driver {name}; there are: {', '.join(known)}")
