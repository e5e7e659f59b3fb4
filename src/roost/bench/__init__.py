"""Benchmarks: every figure that the project quotes is measured and printed here.

Benchmarks, a command of ``roost bench`` each:

candidates    latency of GET /allocation_candidates
claims        rate and latency of durable allocation writes
contention    many clients that claim on few, nearly full hosts
filters       suitable hosts found by a Python loop, by SQL and by the fleet
decide        scheduling decisions, in memory and durable
start         cold start and memory
limits        the limits of the machine for the same work
suite         all of them, with results that an interrupted run keeps

Fleets and databases:

fleets            descriptions of fleets
queries           allocation candidate queries for each fleet
memory_fleet      a fleet in memory, from its description
bulk_load         a database, from the description of its fleet
store             databases that are kept and copied

Services and load:

comparison        how to measure; Roost and OpenStack Placement in turns
services          services as processes
peer              the installation of OpenStack Placement
null_service      an HTTP service that does nothing
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
errors            errors
"""
