"""The scheduler's operations over HTTP, all under ``/v1``.

operations       the table: rows of all operations, policy rules, paths. A new operation is a row here.
destinations     ``/v1/select_destinations`` and ``/v1/use_alternate``
dry_runs         ``/v1/scheduler/check``, ``explain`` and ``what-if``: nothing is claimed
external         ``/v1/nova/external``: an order of hosts for a fork of Nova; nothing is claimed
host_judge       the verdict on each host behind it
records          ``/v1/scheduler/records``
hosts            ``/v1/scheduler/hosts``: the hosts with what placement has of each
fleet_map        ``/v1/scheduler/map``: the level and the state of every host
results          ``/v1/scheduler/results``
repeated         requests for hosts that are sent again, and claims that such requests have made
kept_answers     answers to requests with an Idempotency-Key
wire             request specs and selections as JSON, in Roost's and in Nova's form
service          the objects that the handlers use
refusals         the errors of the scheduler as errors of HTTP
conventions      the form of errors: those of a run name the run
app              the ASGI application, and its OpenAPI document
"""
