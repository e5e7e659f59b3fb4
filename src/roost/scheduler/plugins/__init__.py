"""Filters and weighers: the protocols, the enabled plugins, and the parts that several of them share.

plugins            the protocols of filters and weighers, and the enabled ones
looks              `Looks`: the parts of a host that a plugin reads
declarations       the declarations of plugins, with defaults
plugin_calls       calls plugins; their errors become a `SchedulerFault`
plugin_names       classes by name: built-ins by Nova's class names, entry points, import paths
plugin_options     the options of one plugin
metrics_options    options of the metrics filter and the metrics weigher
pci_options        options of PCI devices
host_limits        base class of filters that limit a number of each host
soft_groups        base class of the two weighers of soft server groups
plain_plugins      plugins in Nova's manner, which judge one host at a time
host_state         the host as such a plugin sees it
plain_spec         the request spec as such a plugin sees it
removed_filters    filters that Nova has removed
aggregate_numbers  numbers and words in aggregate metadata, for several filters
fragmentation      the fragmentation of hosts' devices, for `FragmentationWeigher`
json_query         the query language of `JsonFilter`
"""

from roost.scheduler.plugins.looks import Looks

__all__ = ["Looks"]
