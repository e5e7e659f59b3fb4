"""Commands that serve a program: the options that they share, and the start of the program."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce, wraps
from typing import Any, NamedTuple, TypeVar

import click

from roost.cli.configuration import print_warnings, tell_options
from roost.cli.listen_options import ListenOptions, listening_at
from roost.cli.options import config_files, metrics_host, metrics_port, no_authentication, settings
from roost.cli.placement_config import placement_source
from roost.cli.workers import MIB, with_workers
from roost.placement.options import PlacementOptions, proxy_warnings, read_options
from roost.process.logs import configure_logs
from roost.process.metrics.switch import exposed
from roost.process.option_source import Source
from roost.server.scheduler.program import Program, ProgramKind, serve
from roost.server.workers.database_wait import prepare_unless_away
from roost.server.workers.listeners import listen
from roost.server.workers.supervision import SupervisionRules

Options = TypeVar("Options", bound=PlacementOptions)


class ServingOptions(NamedTuple):
    """The options of a command that serves a program.

    ``rules``: the limits of its worker processes. ``metrics_port``: None: no metrics. ``insecure``: other
    machines may be served without authentication.
    """

    listening: ListenOptions
    rules: SupervisionRules
    metrics_host: str
    metrics_port: int | None
    insecure: bool


def serving_at(port: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of serving and of the configuration to a command.

    The command gets ``serving``: `ServingOptions`, and ``source``: `Source`. ``port``: the default port.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_serving(
            listening: ListenOptions,
            workers: int,
            memory_limit: int | None,
            drain_seconds: float,
            config_files: tuple[str, ...],
            settings: tuple[str, ...],
            metrics_port: int | None,
            metrics_host: str,
            insecure: bool,
            **others: Any,
        ) -> None:
            limit = None if memory_limit is None else memory_limit * MIB
            rules = SupervisionRules(workers, drain_seconds=drain_seconds, memory_limit=limit)
            command(
                serving=ServingOptions(listening, rules, metrics_host, metrics_port, insecure),
                source=placement_source(config_files, settings),
                **others,
            )

        options = (
            listening_at(port),
            with_workers,
            config_files,
            settings,
            metrics_port,
            metrics_host,
            no_authentication,
        )
        return reduce(lambda decorated, option: option(decorated), reversed(options), with_serving)

    return decorate


def serve_program(
    command: str, kind: ProgramKind[Options], source: Source, serving: ServingOptions, name: str | None = None
) -> None:
    """Serve a program until SIGTERM or SIGINT. Raises `OperatorError`.

    ``command``: the command of the command line. ``name``: the announced name, if it differs.
    """
    listening = serving.listening
    tell_options(source, command, schedules=True)
    http = read_options(source)
    options = kind.read(source)
    rules = serving.rules
    program = Program(kind, options, serving.insecure, rules, listening.host, listening.tls)
    program.check()
    listeners = listen(listening.address, rules.workers)
    with exposed(serving.metrics_host, serving.metrics_port) as metrics:
        configure_logs(http.logs)
        prepare_unless_away(partial(kind.prepare, options), options.databases.values())
        print_warnings(proxy_warnings(http))
        announcement = f"roost: {name or command} on {listening} with {rules.workers} worker(s)"
        serve(listeners, replace(program, metrics=metrics), lambda: click.echo(announcement, err=True))
