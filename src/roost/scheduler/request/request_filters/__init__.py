"""Request filters: conditions that placement can check already, so that filters judge fewer hosts later.

Each is a function from a query to a narrower query. Source: ``nova/scheduler/request_filter.py``.

narrowed_query  ways to narrow a query, and the data that request filters read
spec_filters    traits of nodes that a request needs, by its spec and the options alone
table_filters   places, reserved aggregates and owners, by the node table and placement as well
"""
