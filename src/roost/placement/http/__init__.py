"""The Placement API over HTTP, microversions 1.0 to 1.39, on the HTTP kernel.

    app                the ASGI application
    operations         the rows of all operations; versioned is the type of a row
    conventions        version headers and the forms of errors
    service            what the handlers work with
    bodies, decoding   the types of JSON bodies, and from JSON to them
    document           the OpenAPI document at a microversion
    answers            from values to responses: JSON, empty, cache headers
    worker, server     one server process, and starting all of them

and one file for each resource, named as its URL: providers, inventories, traits, aggregates, usages,
resource_classes, allocations, candidates, reshaper, root. A handler reads top to bottom: parse, act, answer.

To add a microversion: raise `LATEST`; put what is new into the tables of `microversions`, `query`
(both in `roost.placement.wire`) and `operations`; read them where the behaviour is.
"""
