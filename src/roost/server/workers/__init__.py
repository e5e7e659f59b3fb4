"""Worker processes of a service: one parent process starts, watches, replaces and stops them.

supervision         the decisions of the parent, as a state machine without I/O
supervision_events  the events that it takes, and the effects that it returns
supervisor          the parent process, which performs these effects: signals, timers, logs
worker_process      a worker's process as the parent has it: fork, report of its start, end
listeners           the listening sockets
worker              a worker process: an ASGI application that opens the service when the server starts
granian             the HTTP server of a worker, on one of these sockets
tls                 the files of TLS
database_wait       the wait for databases that are away at the start
beats               the signs of life of a worker, and the clock that judges their absence
retirement          the end of a worker: when another one replaces it, and with its parent
loop_signals        functions that a worker calls on signals
notify              messages to systemd
"""
