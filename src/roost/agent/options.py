"""The options of agents, in group ``agent``."""

from oslo_config import cfg

from roost.agent.host import AgentTimes

GROUP = "agent"

OPTIONS = [
    cfg.StrOpt(
        "driver",
        default="simulated",
        help="The driver of the hosts: the name of an entry point of the group roost.agent.drivers, "
        "MODULE:ATTRIBUTE, simulated or libvirt.",
    ),
    cfg.StrOpt(
        "provider_config_location",
        help="A folder of files *.yaml, as Nova's provider configuration: custom inventories and traits of "
        "providers beside those of the driver. They are read at the start.",
    ),
    cfg.FloatOpt(
        "poll_seconds",
        default=20.0,
        min=0.0,
        help="The longest wait of a poll. The cell may make it shorter.",
    ),
    cfg.FloatOpt(
        "health_seconds",
        default=10.0,
        min=0.0,
        help="Seconds between two reports of a node whose guests or metrics change.",
    ),
    cfg.FloatOpt(
        "report_seconds",
        default=60.0,
        min=0.1,
        help="Seconds between two looks of the driver at what the host has, for placement.",
    ),
    cfg.FloatOpt(
        "refresh_seconds",
        default=300.0,
        min=0.1,
        help="Seconds between two looks at what others have changed of the host's providers.",
    ),
    cfg.FloatOpt("start_seconds", default=600.0, min=0.1, help="A guest must start within this time."),
    cfg.FloatOpt(
        "retry_seconds",
        default=1.0,
        min=0.01,
        help="The pause before something that failed is done again. Each further pause is twice as long.",
    ),
    cfg.FloatOpt("longest_retry_seconds", default=30.0, min=0.01, help="The longest of these pauses."),
    cfg.FloatOpt(
        "token_seconds",
        default=86400.0,
        min=0.0,
        help="Seconds after which the agent asks for a new token. 0: never.",
    ),
]


def times_from(conf: cfg.ConfigOpts) -> AgentTimes:
    """Return the times of agents by a configuration in which `OPTIONS` are registered."""
    group = conf[GROUP]
    return AgentTimes(
        poll=group.poll_seconds,
        report=group.report_seconds,
        refresh=group.refresh_seconds,
        health=group.health_seconds,
        start=group.start_seconds,
        retry=group.retry_seconds,
        longest_retry=group.longest_retry_seconds,
        token=group.token_seconds or float("inf"),
    )
