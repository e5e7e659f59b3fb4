"""How commands serve: placement, the scheduler and the conductors have the same options of serving."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce, wraps
from typing import Any, NamedTuple, TypeVar

import click

from roost.cli.configuration import print_warnings, tell_options
from roost.cli.listen_options import Listening, listening_at
from roost.cli.options import config_files, metrics_host, metrics_port, no_authentication, settings
from roost.cli.placement_config import placement_source
from roost.cli.workers import MIB, with_workers
from roost.placement.options import proxy_warnings, read_options
from roost.process.logs import configure_logs
from roost.process.metrics.switch import exposed
from roost.server.scheduler.program import Kind, Program, ProgramOptions, serve
from roost.server.workers.database_wait import prepare_unless_away
from roost.server.workers.listeners import listen
from roost.server.workers.supervision import Rules
from roost.web.auth import Source

Options = TypeVar("Options", bound=ProgramOptions)


class Serving(NamedTuple):
    """The options of a command line about serving.

    ``rules``: those of its worker processes. ``metrics_port``: None: no metrics. ``insecure``: other machines
    may be served without authentication.
    """

    listening: Listening
    rules: Rules
    metrics_host: str
    metrics_port: int | None
    insecure: bool


def serving_at(port: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of serving and of the configuration to a command.

    It gets them as ``serving``: `Serving`, and ``source``: `Source`. ``port``: the default.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_serving(
            listening: Listening,
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
            rules = Rules(workers, drain_seconds=drain_seconds, memory_limit=limit)
            command(
                serving=Serving(listening, rules, metrics_host, metrics_port, insecure),
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
    command: str, kind: Kind[Options], source: Source, serving: Serving, name: str | None = None
) -> None:
    """Serve a program until it is told to end. Raises `OperatorError`.

    ``command``: that of the command line. ``name``: what is announced, if it is another.
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
