"""The seed of a nightly run: drawn anew for each run, printed at its end, and repeated on request.

`make nightly` tests other random cases each night. Setting ``ROOST_SEED`` to the printed number makes the
same cases again, in the differential tests, in the tests that kill processes, and in Hypothesis.
"""

import os
import secrets

import hypothesis
import pytest

VARIABLE = "ROOST_SEED"
"""The environment variable that holds the seed. Processes of pytest-xdist inherit it from the first one."""

EXAMPLES = 2_000
"""Examples of each property in a nightly run."""

_SEEDS = 10**9


def is_nightly(config: pytest.Config) -> bool:
    """Whether this run asks for nightly tests, by an expression of marks that begins with ``nightly``."""
    return str(config.getoption("markexpr")).startswith("nightly")


def draw_seed(config: pytest.Config) -> None:
    """Draw the seed of a nightly run unless the variable gives one, and make Hypothesis use it.

    Properties that do not say their number of examples themselves get many in such a run.

    Without the profile, Hypothesis would draw the same cases in every run where the variable ``CI`` is set.
    """
    if not is_nightly(config):
        return
    seed = os.environ.setdefault(VARIABLE, str(secrets.randbelow(_SEEDS)))
    hypothesis.settings.register_profile("nightly", derandomize=False, print_blob=True, max_examples=EXAMPLES)
    hypothesis.settings.load_profile("nightly")
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = seed


def nightly_seed() -> int:
    """The seed of this run, 0 outside of a nightly run where the variable is not set."""
    return int(os.environ.get(VARIABLE, "0"))
