"""The HTTP kernel that all services share: operations as rows, and everything around their handlers.

    operation            an operation as a row: method, path, policy rule, body, query, response, handler
    edge                 the wrapper around every service, which sees each request from outside
    observation          the record of one request, from arrival to response
    app                  rows to an ASGI application; authentication, authorisation, decoding, errors
    conventions          differences between services: checks of a request, the form of errors
    errors               the HTTP error tree
    request              a request, with the values that the kernel adds to it
    auth                 authentication, policy rules, and the tokens of this process
    policy               policy rules of operations, and the projects that a request may reach
    query                query strings, from text to a struct
    validation_messages  the texts of errors of bodies and parameters
    idempotency          requests with a client's key, which are carried out once
    forwarded            requests that come through a proxy
    cors                 cross-origin requests
    openapi              the OpenAPI document of operations
    health               checks that a service can serve requests, and the report on them, also as metrics
    health_operations    /healthz, /readyz and /healthcheck
    limits               the limits of a process, as options
    admission            serves a request, or refuses it at once with 503
    patient_sender       sends long responses in parts, within time limits
    connections          settings of the server against slow clients; cutting connections
    client_transport     clients of other services, over native connections
    dispatch             several applications behind one server
    watches              parts of the edge: log lines, metrics and spans of requests

A handler is a coroutine function ``handler(service, req, resp, **path_parameters)``. It returns the value
that becomes the JSON body of the response, or None if it has filled in the response itself. It neither
authenticates nor authorises nor decodes.
"""
