"""The operations of the Placement service that upstream does not have, under ``/v1``.

app         the ASGI application
operations  the rows of all operations, and the types of their queries and responses
parameters  query strings that contain a query for allocation candidates
candidates  candidates by page; cursor names a page, past rebuilds the version of the first page
capacity    the capacity and use of each resource class, and the fullest providers
changes     the change feed as JSON or as a stream of events; follower wakes its readers
explain     the reasons why there are few candidates, and the nearest misses
service     what the handlers work with, and the OpenAPI document
"""
