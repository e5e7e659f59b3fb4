"""Host aggregates and availability zones: changed by operators, mirrored to placement.

host_aggregates      changes by the rules that need the cells: names of nodes, instances on them
mirror               the task that mirrors the members to placement, and repairs differences there
provider_aggregates  writes the aggregates of one provider in placement
operations           the operations over HTTP, their handlers and policy rules
types                their bodies and queries

The aggregates themselves are in `roost.state.api_database.aggregates`: no agent owns them.
"""
