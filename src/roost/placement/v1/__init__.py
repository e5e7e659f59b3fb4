"""What upstream's API never had, under ``/v1``.

    app           what is put together: URLs, middleware, error forms; shared with other applications
    operations    every operation, its policy rule and its query parameters
    openapi.json  the same for clients, as OpenAPI; a test holds the two together
    gate, errors  before each operation, and from a refusal to an answer
    parameters    query strings, checked
    candidates    allocation candidates by page: cursor names a page, past rebuilds the version it is of
    changes       the change feed: JSON, or a stream of events that follower wakes
    explain       why there are so few candidates, and what would be nearest

To add an operation: a file with its resource, its line in `operations` and in `app`, its path in the
document, its rows in ``docs/api-v1.md``.
"""
