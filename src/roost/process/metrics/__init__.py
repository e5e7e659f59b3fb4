"""Metrics: counters, gauges and histograms of all processes, and their publication to Prometheus.

    instruments  counters, gauges and histograms, in the memory of one process
    catalogue    every metric but those of the bridge, as a row: name, help, labels, advice to operators
    nova_bridge  the rows of the bridge to Nova
    publisher    publishes the values of one process, and of the process itself, once a second
    folder       the folder that the processes of a service publish to
    endpoint     the address at which Prometheus gets the values of all processes together

A room counts at its border, in the thread of the event loop: ``metrics.COMMITS.inc()``, with ``from
roost.process.metrics import catalogue as metrics``. That changes a number in memory, and does nothing before
`start_counting`. Only ``publisher`` and ``endpoint`` use prometheus_client, so a process without metrics
never imports it.

Why not the counters of prometheus_client: in its multiprocess mode each increment writes to a mapped file
under a lock and takes 2 to 5 µs, and a claim makes a dozen of them.

To add a metric: add a row to ``catalogue`` or ``nova_bridge``, count where the event happens, and write the
page with ``roost metrics``.
"""
