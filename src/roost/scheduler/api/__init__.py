"""The scheduler's operations over HTTP, all under ``/v1``.

operations       the table: rows of all operations, policy rules, paths. A new operation is a row here.
destinations     ``/v1/select_destinations`` and ``/v1/use_alternate``
check            ``/v1/scheduler/check``
explain          ``/v1/scheduler/explain``
what_if          ``/v1/scheduler/what-if``
records          ``/v1/scheduler/records``
results          ``/v1/scheduler/results``
repeated         requests for hosts that are sent again
kept_answers     answers to requests with an Idempotency-Key
standing_claims  answers from claims of the same request, sent before
wire             request specs and selections as JSON, in Roost's and in Nova's form
service          the objects that the handlers use
refusals         the errors of the scheduler as errors of HTTP
conventions      the form of errors: those of a run name the run
app              the ASGI application, and its OpenAPI document
"""
