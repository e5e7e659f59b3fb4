"""How commands serve: the scheduler's and the conductors' programs have the same options of serving."""

from dataclasses import replace
from typing import NamedTuple, TypeVar

import click

from roost.auth import Source
from roost.cli.configuration import options_without_effect, print_warnings
from roost.cli.listening import Listening
from roost.cli.workers import MIB
from roost.metrics.enabling import exposed
from roost.placement.options import proxy_warnings, read_options
from roost.scheduling.program import Kind, Program, ProgramOptions, serve
from roost.serving.listeners import listen
from roost.serving.supervision import Rules

Options = TypeVar("Options", bound=ProgramOptions)


class Serving(NamedTuple):
    """The options of a command line about serving. ``memory_limit`` in MiB, ``drain_seconds`` in seconds."""

    listening: Listening
    workers: int
    memory_limit: int | None
    drain_seconds: float
    metrics_host: str
    metrics_port: int | None
    insecure: bool


def serve_program(name: str, kind: Kind[Options], source: Source, serving: Serving) -> None:
    """Serve a program until it is told to end. ``name`` is announced. Raises `OperatorError`."""
    listening = serving.listening
    http = read_options(source)
    warnings = options_without_effect(source, http.auth_strategy, schedules=True)
    options = kind.read(source)
    rules = Rules(
        serving.workers,
        drain_seconds=serving.drain_seconds,
        memory_limit=None if serving.memory_limit is None else serving.memory_limit * MIB,
    )
    program = Program(kind, options, serving.insecure, rules, listening.host, listening.tls)
    program.check()
    listeners = listen(listening.address, serving.workers)
    with exposed(serving.metrics_host, serving.metrics_port) as metrics:
        kind.prepare(options)
        print_warnings([*warnings, *proxy_warnings(http)])
        announcement = f"roost: {name} on {listening} with {serving.workers} worker(s)"
        serve(listeners, replace(program, metrics=metrics), lambda: click.echo(announcement, err=True))
