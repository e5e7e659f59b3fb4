"""Benchmarks: every figure that the project quotes is measured and printed here.

Benchmarks, each of which is a command of ``roost bench``:

candidates    latency of GET /allocation_candidates
claims        rate and latency of durable allocation writes
contention    many clients that claim on few, nearly full hosts
overload      claims beside idle connections and a flood of expensive queries
overload      claims beside idle connections and a flood of expensive queries
filters       suitable hosts found by a Python loop, by SQL and by the fleet
decide        scheduling decisions, in memory and durable
requests      the kinds of requests that ``decide`` measures
start         cold start and memory
limits        the limits of the machine for the same work
metrics       the processor time of requests with and without metrics
agents        agents over the wire: idle cost and build rate
reshape       reshapes of hosts while instances come and go
suite         all of them, with results that an interrupted run keeps
replay/       replays of traces and of a synthetic workload: ``roost replay``
cli/          the commands

Fleets and databases:

fleets            descriptions of fleets
queries           allocation candidate queries for each fleet
memory_fleet      a fleet in memory, from its description
bulk_load         a database, from the description of its fleet
store             databases that are kept and copied

Services and load:

comparison        the options of a measurement; Roost and OpenStack Placement measured in turns
services          services as processes
cloud             a conductor, cells and agents as processes
peer              the installation of OpenStack Placement
null_service      an HTTP service that does nothing
idle_connections  connections that send nothing
load_generator    the client process that sends requests
measurement       runs of the load generator, and figures of their results
timing            the median time of a function
process_memory    memory of processes
server_process    a database server as a process; tests use it as well
postgresql        a private PostgreSQL server
loopback          free ports

Results:

report            a table that is printed and kept as JSON
markdown          reports in a page of documentation
plot              plots
machine           the machine that was measured
progress          the current step, for the progress of a command
progress          the current step, for the progress of a command
errors            errors
"""
