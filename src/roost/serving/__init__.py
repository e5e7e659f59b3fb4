"""Worker processes of a service: they are started, watched, replaced and stopped by one parent process.

- `supervision`: the decisions, a state machine without I/O.
- `supervisor`: the parent process that performs them: processes, signals, timers.
- `worker_process`: one worker, the HTTP server Granian on a listening socket of the parent.
- `listeners`: the listening sockets.
"""
