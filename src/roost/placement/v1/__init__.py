"""The operations of the Placement service that upstream does not have, under ``/v1``.

app                 the ASGI application
operations          the rows of all operations, and the types of their queries
parameters          query strings that contain a query for allocation candidates
candidates          candidates by page
candidate_reader    the candidates of one query on one version, read page by page
cursor              cursors, which name a page by query, version and offset
past                rebuilds the version of the first page
capacity            the capacity and use of each resource class, and the fullest providers
changes             the change feed as JSON or as a stream of events
follower            wakes requests that wait for commits
explain             the reasons why a query has few candidates, and its near misses
groups              writes of allocations with the conditions of server groups; members of a group
assignments         the assignments of the hardware of nodes
word                announcements that an operator has changed something
service             the state that all handlers share, and the OpenAPI document of ``/v1``
"""
