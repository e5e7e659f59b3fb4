"""The benchmark: every figure that the project quotes is measured and printed here.

A file for each question:

candidates    who can hold this? over HTTP
claims        it is mine, durably, over HTTP
contention    many clients, few hosts, little room
filters       a Python loop, SQL, and the fleet
decide        decisions of the scheduler, without the store and with it
start         cold start and memory
limits        what the machine allows
suite         all of them in a row

What they are made of:

fleets -> memory, filling -> store      fleets as descriptions, in memory, in databases, kept and copied
client <- load <- contest               load from another process, Roost and upstream in turns
services, peer, empty                   what the load is sent to
server_process, postgresql, loopback    servers of one's own; the tests start theirs with these too
report -> markdown, plot; machine       what was found, and on what
"""
