"""Import from a database of OpenStack Placement into one of Roost, and export back.

    openstack_import   the import, in many commits; it can be interrupted and run again
    openstack_export   the export, in one transaction
    report             the result of an import or an export
    anomalies          the kinds of anomalies, and the checks that find them
    probe              the first read of a target, which changes nothing
    placement_tables   the tables of OpenStack Placement 16.0
    provider_rows      reads resource classes, traits, aggregates and providers from it
    provider_trees     puts providers in order, parents first, and breaks loops
    consumer_rows      reads consumers and their allocations from it
    copy_commands      the ledger's commands that store what was read
    placement_target   an OpenStack Placement database that is written: the check that it is empty, its ids
    placement_writer   writes the rows of an export
    ledger_consumers   reads the consumers of a ledger, in pages
    errors             the errors of an import or an export

An *anomaly* is data that does not follow Placement's rules. The report lists each one, and whether it was
kept or left out.
"""

from roost.placement.exchange.errors import ExchangeError, NotEmpty, NotPlacement
from roost.placement.exchange.openstack_export import export_placement
from roost.placement.exchange.openstack_import import import_placement
from roost.placement.exchange.report import ExchangeReport, Progress

__all__ = [
    "ExchangeError",
    "ExchangeReport",
    "NotEmpty",
    "NotPlacement",
    "Progress",
    "export_placement",
    "import_placement",
]
