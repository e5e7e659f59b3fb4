"""The whole system in one process: placement, scheduler, conductors, cells and simulated hosts.

layout    the layout of a system: cells and their simulated hosts
lock      one process at a time in a data directory
config    its configuration: databases that no file names are in the data directory
system    opens the parts of all services, runs them, and stops them
server    serves the HTTP APIs of all services on one address
report    the report of the process
timings   durations of decisions and claims
"""

from roost.server.all_in_one.layout import LayoutHost, SystemLayout, kept_layout, uniform_layout
from roost.server.all_in_one.system import System, SystemOptions

__all__ = ["LayoutHost", "System", "SystemLayout", "SystemOptions", "kept_layout", "uniform_layout"]
