"""Filters and weighers: their members, the enabled plugins, and the parts that several of them share.

plugins            all members that filters and weighers may have, and the enabled plugins
plugin_class       the members of a class that are read before a plugin is made
looks              `Looks`: the parts of a host that a plugin reads
plugin_calls       calls plugins; their errors become a `SchedulerFault`
plugin_names       classes by name: built-ins, entry points, import paths; the filters that Nova has removed
plugin_options     the options of one plugin, those of metrics, and numbers in aggregates in their place
base_classes       base classes of built-in plugins, and the hints that they read
plain_plugins      plugins in Nova's manner, which judge one host at a time, and what they are given
"""

from roost.scheduler.plugins.looks import Looks

__all__ = ["Looks"]
