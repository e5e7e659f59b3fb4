"""The scheduler as a service: destinations, alternates, records and reasons over HTTP.

options    the options of `roost scheduler`
assembly   opens placement, the cells' nodes, and a scheduler on both
runtime    runs the parts of a process beside its requests
readiness  the checks that must pass for requests to be served
served     a worker process of the scheduler: it opens and serves it
server     the program `roost scheduler`: its options and checks
program    any program under a supervisor, which each worker process serves

The folder is above the scheduler and the conductor, because the node table is fed from the conductor's
journal. `roost up` serves the same operations on the scheduler of its conductors.
"""
