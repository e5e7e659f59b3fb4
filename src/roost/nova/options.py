"""The bridge's own options, and those of nova.conf that it reads.

Source: the options that Nova 34.0 and oslo.messaging 18.3 register, with their names, sections and defaults.
"""

from typing import Literal

from roost.process.options import OptionStruct, option

CLOSE_SECONDS = 5.0
"""Seconds that the last decisions, replies and connections have after the time of a graceful end."""


class BridgeOptions(OptionStruct, frozen=True, group="nova_bridge"):
    """The options of the bridge between a Nova cloud and the scheduler."""

    connection: str | None = option(
        None,
        secret=True,
        help="This is the SQLAlchemy URL of the bridge's own database: the journal of nodes, the records "
        "unless [records] names another one, the audit. [database] and [api_database] are Nova's.",
    )
    answer_seconds: float = option(
        10.0, min=0.1, help="Nova's databases have this many seconds for each answer."
    )
    nodes_seconds: float = option(
        30.0,
        min=1.0,
        help="Every so many seconds all compute nodes and instances are looked through for changes. What a "
        "compute tells by a cast is read at once.",
    )
    cells_seconds: float = option(
        60.0, min=1.0, help="Every so many seconds the cell mappings are read again; SIGHUP does it at once."
    )
    service_row: bool = option(
        True,
        help="The bridge has a row in Nova's table of services, as a nova-scheduler has. Its account needs "
        "to write that table.",
    )
    public_reasons: bool = option(
        True,
        help="The fault of a server that finds no host says why, without names of hosts. If false, it has "
        "Nova's words alone.",
    )
    audit_seconds: float = option(
        300.0,
        min=0.0,
        help="Every so many seconds claims are looked for that nobody answered for: 0 for never.",
    )
    free_unanswered_claims: bool = option(
        False, help="Such claims are freed after they were seen twice. If false, they are only reported."
    )
    mode: Literal["serve", "shadow"] = option(
        "serve",
        choices={
            "serve": "answers Nova's calls",
            "shadow": "gets a copy of each call, decides without a claim, and compares with what was claimed",
        },
        help="What the bridge does with Nova's calls.",
    )


class NovaOptions(OptionStruct, frozen=True, group="DEFAULT"):
    """The options of nova.conf that the bridge reads under the names and with the defaults of Nova.

    Those of filters, weighers and request filters are `roost.scheduler.SchedulerOptions`; oslo.messaging
    reads its own.
    """

    host: str | None = option(
        None, help="The name of this nova-scheduler: its row in services, and its queue. Default: the host's."
    )
    transport_url: str | None = option(None, secret=True, help="The URL of the message broker.")
    report_interval: int = option(10, min=1, help="Seconds between two signs of life of a service.")
    service_down_time: int = option(60, min=1, help="Seconds without a sign of life until a service is down.")
    default_availability_zone: str = option("nova", help="The zone of hosts without one.")
    rpc_response_timeout: int = option(60, min=1, help="Seconds that the caller of a call waits.")
    long_rpc_timeout: int = option(1800, min=1, help="Seconds that the caller of a long call waits.")
    graceful_shutdown_timeout: int = option(
        60, min=0, help="Seconds that the calls in work have to finish at the end. 0 sets no limit."
    )
    max_attempts: int = option(
        3,
        min=1,
        group="scheduler",
        help="Hosts that a build is tried on, with the claimed one.",
    )
    api_database: str | None = option(
        None, name="connection", group="api_database", secret=True, help="Nova's API database."
    )
    main_database: str | None = option(
        None, name="connection", group="database", secret=True, help="Nova's database of cell0 or of a cell."
    )
