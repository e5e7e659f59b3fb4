"""The HTTP kernel that all services share: operations as rows, and everything around their handlers.

    operation    an operation as a row: method, path, policy rule, body, query, response, handler
    edge         what is around every service: it sees each request from outside
    observation  what a service knows of one request, from arrival to response
    app          rows to an ASGI application; authentication, authorisation, decoding, errors
    conventions  where services differ: checks of a request, the form of errors
    errors       the HTTP error tree
    request      a request, with what the kernel adds to it; request ids
    policy       policy rules, and the projects that a request may reach
    query        query strings, from text to a struct
    forwarded    requests that come through a proxy
    cors         cross-origin requests
    openapi      the OpenAPI document of operations
    health       checks of what a service needs, and the report on them
    health_operations, health_app  /healthz, /readyz and /healthcheck
    limits       the limits of a process, as options
    admission    which requests are served, and which are refused at once
    sending      long responses, in parts and within time limits
    connections  settings of the server against slow clients; cutting connections
    dispatch     several applications behind one server

A handler is a coroutine function ``handler(service, req, resp, **path_parameters)``. It returns the value
that becomes the JSON body of the response, or None if it has filled in the response itself. It neither
authenticates nor authorises nor decodes.
"""
