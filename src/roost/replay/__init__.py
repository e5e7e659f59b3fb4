"""Replaying a workload: what arrives and departs, and what became of it.

    trace or seed ──► Workload ──► a runner ──► Summary, UsageSamples ──► table, JSON, PNG

workload    the hosts, and the requests in bins of virtual time
azure       Azure's 2017 VM trace (SOSP'21 form) as a workload
openb       Alibaba's 2023 GPU trace as a workload
synthetic   the demo's own workload, from a seed
tracefile   lines and rows of a trace, numbered for error messages
summary     the figures of one run, as data and as a table
plot        the figures over virtual time, as a PNG

Virtual seconds are those of the workload's own clock; nothing in here looks at a real one.
"""
