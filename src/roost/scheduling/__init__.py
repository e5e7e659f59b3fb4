"""The scheduler as a service: destinations, alternates, records and reasons over HTTP.

    http/   the operations, their handlers and errors, and the ASGI application
    wire/   request specs and selections as JSON: Roost's, and Nova's objects as oslo serialises them

The room is above the scheduler and the conductor, because the node table is fed from the conductor's journal.
`roost up` serves the same operations on the scheduler of its conductors.
"""
