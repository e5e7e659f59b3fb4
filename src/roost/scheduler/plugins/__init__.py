"""Filters and weighers: their members, the enabled plugins, and the parts that several of them share.

plugins            all members that filters and weighers may have, and the enabled plugins
plugin_class       the members of a class that are read before a plugin is made
looks              `Looks`: the parts of a host that a plugin reads
plugin_calls       calls plugins; their errors become a `SchedulerFault`
plugin_names       classes by name: built-ins by Nova's class names, entry points, import paths
plugin_options     the options of one plugin, those of metrics, and numbers in aggregates in their place
pci_options        options of PCI devices
host_limits        base class of filters that limit a number of each host
soft_groups        base class of the two weighers of soft server groups
plain_plugins      plugins in Nova's manner, which judge one host at a time
host_state         the host as such a plugin sees it
plain_spec         the request spec as such a plugin sees it
removed_filters    filters that Nova has removed
fragmentation      the fragmentation of hosts' devices, for `FragmentationWeigher`
json_query         the query language of `JsonFilter`
"""

from roost.scheduler.plugins.looks import Looks

__all__ = ["Looks"]
