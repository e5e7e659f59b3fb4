"""The entry point of the program `roost`, also as ``python -m roost``."""

import signal


def main() -> None:
    """Import the command line and run a command."""
    # The imports take a tenth of a second. Ctrl-C during them ends the process without a traceback.
    interrupts = signal.getsignal(signal.SIGINT)
    if interrupts is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from roost.cli.main import main as run_command

    signal.signal(signal.SIGINT, interrupts)
    run_command()


if __name__ == "__main__":
    main()
