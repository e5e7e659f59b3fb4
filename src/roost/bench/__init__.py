"""Benchmarks: every figure that the project quotes is measured and printed here.

Benchmarks, each with its workload, table, goals, and command of ``roost bench``:

candidates    latency of GET /allocation_candidates
claims        rate and latency of durable allocation writes
contention    many clients that claim on few, nearly full hosts
overload      claims beside idle connections and a flood of expensive queries
filters       suitable hosts found by a Python loop, by SQL and by the fleet
decide        scheduling decisions, in memory and durable
start         cold start and memory
past          views of the dashboard as of a time, and the index for them
dashboard/    the dashboard on a large fleet: pages, first paints, viewers beside claims, live events
limits        the limits of the machine for the same work
metrics       the processor time of requests with and without metrics
agents        agents over the wire: idle cost and build rate
reshape       reshapes of hosts while instances come and go
maintenance   plans of maintenance waves for a trace at its fullest
nova/         Nova's scheduler and Roost in its place, on the databases of one Nova
suite         all of them, with results that an interrupted run keeps; the table of goals
replay/       replays of traces and of a synthetic workload: ``roost replay``

Workloads:

fleets            descriptions of fleets
queries           allocation candidate queries for each fleet
requests          the kinds of requests that ``decide`` measures
decisions         loops of decisions that ``decide`` and ``limits`` time
memory_fleet      a fleet in memory, from its description
bulk_load         a database, from the description of its fleet
past_history      commits of a day in such a database
store             databases that are kept and copied

Services and load:

services          services as processes, with their memory and processor time
cloud             a conductor, cells and agents as processes
peer              the installation of OpenStack Placement
null_service      an HTTP service that does nothing
load_generator    the client process that sends requests
server_process    a database server as a process; tests use it as well
mariadb           a private MariaDB server
postgresql        a private PostgreSQL server
loopback          free ports

Measurement and output, the same for all:

measurement       runs of the load generator, services measured in turns, timed functions, progress
goals             thresholds with their calibrations
report            a table that is printed, kept as JSON and put into a page of documentation
options           shared options, and the run of a command up to its output
commands          the group ``roost bench``
errors            errors of benchmarks and replays
"""
