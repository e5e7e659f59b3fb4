"""The fleet as pages count it: all hosts in the order of the map, their states, amounts and levels.

hosts           the hosts as they are now, and caches of what pages count
criteria        the hosts that a filter chooses
groups          hosts by zone, rack and cell, with their amounts
levels          the bytes of the map, one a host
flavor_fits     the hosts that a flavor fits on, as the scheduler decides
selection       what a map shows
kept_levels     the bytes of maps, kept for all viewers of the same one
map_query       the query of the map and of its bytes
map_operations  the data of the map over HTTP
"""
