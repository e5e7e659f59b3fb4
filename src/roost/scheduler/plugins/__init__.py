"""What filters and weighers are, and those that are enabled.

plugins          the protocols, and the enabled plugins
declarations     what plugins declare, with defaults
asking           calls plugins; what they raise is contained
plugin_names     classes by name: built-ins by Nova's class names, entry points, import paths
plugin_options   their options; metrics_options, pci_options: options that several read
host_limits      what filters of a number of each host have alike; soft_groups: what two weighers have alike
plain_plugins    plugins asked about one host at a time, as Nova's are; host_state, plain_spec: what they see
removed_filters  filters that Nova once had
aggregate_numbers, fragmentation, json_query  what single plugins are made of
"""

from roost.scheduler.plugins.looks import Looks

__all__ = ["Looks"]
