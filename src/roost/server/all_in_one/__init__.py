"""The whole system in one process: placement, scheduler, conductors, cells and simulated hosts.

layout    what the system is made of: cells and their hosts
lock      one process at a time in a data directory
config    its configuration: databases that no file names are in the data directory
system    opens the parts of all services, runs them, and stops them
server    the HTTP API of all of it
timings   how long decisions and claims take
"""

from roost.server.all_in_one.layout import Layout, LayoutHost, kept_layout, uniform_layout
from roost.server.all_in_one.system import System, SystemOptions

__all__ = ["Layout", "LayoutHost", "System", "SystemOptions", "kept_layout", "uniform_layout"]
