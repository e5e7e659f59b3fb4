"""The scheduler as a service: destinations, alternates, records and reasons over HTTP.

    http/      the operations, their handlers and errors, and the ASGI application
    wire/      request specs and selections as JSON: Roost's, and Nova's objects as oslo serialises them
    client/    a client of such a scheduler, for conductors
    hosts/     where hosts come from: the cells' databases, and placement
    options    the options of `roost scheduler`
    running    runs the parts of a process beside its requests
    readiness  what it needs to serve requests
    served     what one of its processes serves
    server     the scheduler as a program
    program    a program under a supervisor, of which each worker process serves one

The room is above the scheduler and the conductor, because the node table is fed from the conductor's journal.
`roost up` serves the same operations on the scheduler of its conductors.
"""
