"""The way in and the way back: between a database of OpenStack Placement and one of ours.

    placement_tables   the tables of OpenStack Placement, as its release 16.0 has them
    snapshot           reading such a database: one read-only transaction, and whether it can be read
    outline            the trees of providers, parents first, loops broken
    provider_rows      from its rows to providers with all that they have
    consumer_rows      from its rows to consumers with all that they hold
    copying            the commands that put these into a ledger
    importing          from Placement to Roost, chunk by chunk
    exporting          from Roost to Placement, all or nothing, by way of consumer_pages (reading ours),
                       target (is it empty?) and writing (the rows)
    glance             a look at a target before it is opened for writing
    doubts             what was doubtful, in words; report is what came of it all

Words: what cannot be right but can be kept is *kept* and named as a *doubt*; what the other side has no
place for is *left out* and named.
"""

from roost.exchange.errors import ExchangeError, NotEmpty, NotPlacement
from roost.exchange.exporting import export_placement
from roost.exchange.importing import import_placement
from roost.exchange.report import Progress, Report

__all__ = [
    "ExchangeError",
    "NotEmpty",
    "NotPlacement",
    "Progress",
    "Report",
    "export_placement",
    "import_placement",
]
