"""Parts that every process has, whatever it serves.

context          the context of conductors and agents: all that their coroutines use of a process
asyncio_context  that context in a process
wakes            topics that its coroutines wait for
remote_wakes     the same in other processes, by datagrams
logs             the configuration of logging, access lines, ids of requests
instrumentation  metrics, spans and the watch on the event loop of a process, on or off
metrics          counters, gauges and histograms, and their publication to Prometheus
tracing          spans of OpenTelemetry
options          options of configuration files, each declared once as a field of a struct
option_source    the sources of options: files, environment variables, the command line
report           the report of a process: its configuration, versions and threads
deadlines        the time that an operation has left
lane             one worker thread that runs functions in order
loop_watch       a watch on the event loop, which counts long holds by the operation that made them
garbage_collection  exempts loaded objects from garbage collection
timed_steps      a coroutine whose steps between two waits are timed
durable_file     files that are written whole or not at all
command          commands of operators: the words of an option, run with a time limit
"""
