"""Nova's own functional tests with Roost's scheduler in place of nova-scheduler; see functional/run.py."""

import json
import subprocess
from pathlib import Path

import pytest

from roost.bench.server_process import die_with_parent
from support.nova import NOT_INSTALLED, nova_python

HERE = Path(__file__).parent / "functional"
LEFT_OVER = frozenset(
    line for line in (HERE / "left_over.txt").read_text().splitlines() if line.startswith("nova.")
)
TESTS = frozenset((HERE / "tests.txt").read_text().split())


def test_left_over_tests_are_among_those_that_are_run() -> None:
    assert LEFT_OVER <= TESTS


@pytest.mark.nightly
def test_novas_own_tests_pass_with_this_scheduler(tmp_path: Path) -> None:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    results, log = tmp_path / "results.jsonl", tmp_path / "nova.log"
    with log.open("w") as output:
        subprocess.run(
            [python, HERE / "run.py", "--results", results],
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,
            check=False,  # Left over tests fail.
        )
    ended = {each["test"]: each for each in map(json.loads, results.read_text().splitlines())}
    assert ended.keys() == TESTS, log.read_text()[-2000:]
    failed = {name: each["text"][-2000:] for name, each in ended.items() if each["outcome"] == "failed"}
    assert {name: text for name, text in failed.items() if name not in LEFT_OVER} == {}
    assert failed.keys() == LEFT_OVER, "a test that is left over passes"
