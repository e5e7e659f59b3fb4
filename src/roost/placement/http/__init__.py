"""The Placement API over HTTP, microversions 1.0 to 1.39, on the HTTP kernel.

    app                   the ASGI application, and the OpenAPI document at a microversion
    operations            the rows of all operations
    versioned             the type of a row: an operation that depends on the microversion
    conventions           version headers and the forms of errors
    service               the state that all handlers share
    bodies, body_decoder  the types of JSON bodies, and the conversion from JSON to them
    answers               from values to responses: JSON, empty, cache headers
    providers, inventories, traits, aggregates, usages  handlers of each resource, named as its URL
    resource_classes, allocations, candidates, reshaper, root  handlers of each resource, likewise

A handler reads top to bottom: parse, act, answer.

To add a microversion: raise `LATEST`; put what is new into the tables of `microversions`, `query`
(both in `roost.placement.wire`) and `operations`; read them where the behaviour is.
"""
