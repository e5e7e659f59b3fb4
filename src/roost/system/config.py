"""The configuration of a whole system: a file, and over it the environment as ``OS_<GROUP>__<OPTION>``.

Each room defines the options of its group: ``conductor``, ``filter_scheduler``, ``healthcheck``, ``ledger``,
``overload`` and ``records``. Those of logs are in ``DEFAULT``.
"""

from pathlib import Path

from oslo_config import cfg

from roost.conductor.options import GROUP as CONDUCTOR
from roost.conductor.options import OPTIONS as CONDUCTOR_OPTIONS
from roost.conductor.options import time_limits_from
from roost.ledger.retention import GROUP as LEDGER
from roost.ledger.retention import OPTIONS as LEDGER_OPTIONS
from roost.ledger.retention import retention_from
from roost.logs import LogOptions
from roost.logs.options import OPTIONS as LOG_OPTIONS
from roost.logs.options import log_options_from
from roost.model.errors import OperatorError
from roost.records import RecordQueue, open_records, register_options
from roost.scheduler.options import options_from
from roost.system.system import SystemOptions
from roost.tracing import TracingOptions
from roost.tracing.options import GROUP as TRACING
from roost.tracing.options import OPTIONS as TRACING_OPTIONS
from roost.tracing.options import tracing_options_from
from roost.web.health import GROUP as HEALTHCHECK
from roost.web.health import OPTIONS as HEALTH_OPTIONS
from roost.web.health import health_options
from roost.web.limits import GROUP as OVERLOAD
from roost.web.limits import OPTIONS as OVERLOAD_OPTIONS
from roost.web.limits import limits_from


def read_config(config_file: Path | None, data_dir: Path) -> cfg.ConfigOpts:
    """The configuration, with what it does not say about files put into ``data_dir``.

    Raises `OperatorError` for a file or value that cannot be used.
    """
    conf = cfg.ConfigOpts()
    conf.register_opts(LOG_OPTIONS)
    conf.register_opts(TRACING_OPTIONS, group=TRACING)
    conf.register_opts(CONDUCTOR_OPTIONS, group=CONDUCTOR)
    conf.register_opts(LEDGER_OPTIONS, group=LEDGER)
    conf.register_opts(HEALTH_OPTIONS, group=HEALTHCHECK)
    conf.register_opts(OVERLOAD_OPTIONS, group=OVERLOAD)
    register_options(conf)
    conf.set_default("connection", f"sqlite:///{data_dir.resolve() / 'records.db'}", group="records")
    conf.set_default("path", str(data_dir.resolve() / "records.jsonl"), group="records")
    try:
        conf([], project="roost", default_config_files=[] if config_file is None else [str(config_file)])
    except cfg.Error as error:
        raise OperatorError(f"configuration file {config_file}: {' '.join(str(error).split())}") from error
    return conf


def system_options(conf: cfg.ConfigOpts, **others: object) -> SystemOptions:
    """The options of a system as a configuration has them; ``others`` are further ones."""
    try:
        return SystemOptions(
            scheduler=options_from(conf),
            max_attempts=conf[CONDUCTOR].max_attempts,
            time_limits=time_limits_from(conf),
            retention=retention_from(conf),
            health=health_options(conf),
            limits=limits_from(conf),
            **others,  # type: ignore[arg-type]
        )
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: {' '.join(str(error).split())}") from error


def log_options(conf: cfg.ConfigOpts) -> LogOptions:
    """The options of logging as a configuration has them. Raises `OperatorError`."""
    try:
        return log_options_from(conf)
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: {' '.join(str(error).split())}") from error


def tracing_options(conf: cfg.ConfigOpts) -> TracingOptions:
    """The options of tracing as a configuration has them. Raises `OperatorError`."""
    try:
        return tracing_options_from(conf)
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: {' '.join(str(error).split())}") from error


async def open_system_records(conf: cfg.ConfigOpts, data_dir: Path) -> RecordQueue:
    """The records that the configuration names. Raises `OperatorError`."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"data directory {data_dir} cannot be used: {error.strerror}") from error
    return await open_records(conf)
