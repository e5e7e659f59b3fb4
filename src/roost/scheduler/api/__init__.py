"""The scheduler's operations over HTTP, all under ``/v1``.

operations    the table: rows of all operations, policy rules, paths. A new operation is a row here.
destinations  ``/v1/select_destinations`` and ``/v1/use_alternate``
service       what the handlers work with
refusals      the errors of the scheduler as errors of HTTP
conventions   the form of errors: those of a run name the run
document      the OpenAPI document
app           the ASGI application
"""
