"""Replays a workload through the whole system and measures the result.

    trace or seed ──► Workload ──► WorkloadReplay ──► Summary, UsageSamples ──► table, JSON, PNG

    workload    hosts, and requests in bins of virtual time
    azure       reads Azure's VM trace of 2017 as a workload
    openb       reads Alibaba's GPU trace of 2023 as a workload
    synthetic   makes the workload of the demonstration from a seed
    tracefile   lines and rows of a trace, with line numbers for error messages
    runner      runs a workload through a system in this process
    remote      runs a workload through a running system, over HTTP
    state       the saved state of a replay, with the measurements of each bin
    summary     the figures of a whole replay, as data and as a table
    occupancy   hosts in use, and the fewest that would do
    plot        the measurements over virtual time, as a PNG
    local       a replay in this process: options, data directory, verification
    comparison  several settings over one workload: names, options, figures
    comparison_plot  their plot
    command     ``roost replay``

A virtual second is a second of the workload's clock. Only ``runner`` and ``remote`` read a real clock.
"""
