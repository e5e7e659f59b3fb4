"""Worker processes of a service: they are started, watched, replaced and stopped by one parent process.

- `supervision`: the decisions, a state machine without I/O.
- `supervisor`: the parent process that performs them: processes, signals, timers.
- `listeners`: the listening sockets; `steering` keeps connections away from workers that are gone.
- `worker`: what the worker processes of all services have alike.
- `granian`: the HTTP server of a worker, on one of these sockets; `tls`: its certificates.
- `waiting`: what a program does whose databases are away at its start.
- `retiring`: how a worker ends that another one replaces.
- `notify`: what systemd is told.
"""
