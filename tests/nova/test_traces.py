"""Traces of Nova's own services in their databases, as the audit and the ends of attempts read them."""

import json
import subprocess
from pathlib import Path

import pytest

from roost.bench.server_process import die_with_parent
from support.nova import NOT_INSTALLED, nova_python

HERE = Path(__file__).parent / "functional"
CASES = {
    "lost_answers.LostAnswers": ["test_boot", "test_evacuation", "test_resize", "test_unshelve"],
    "ends.Ends": ["test_boot", "test_evacuation", "test_live_migration", "test_resize", "test_unshelve"],
    "ends.RescheduledEnds": ["test_boot"],
    "ends.FailedEnds": ["test_boot"],
}
"""By class. In lost_answers.py Nova gives up calls of a scheduler that has claimed, and the audit frees; in
ends.py builds and moves succeed, fail, and go on at another host."""


@pytest.mark.nightly
def test_audit_and_ends_of_attempts_know_the_traces_of_nova(tmp_path: Path) -> None:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    names = [f"{case}.{test}" for case, tests in CASES.items() for test in tests]
    results, log = tmp_path / "results.jsonl", tmp_path / "nova.log"
    with log.open("w") as output:
        ended = subprocess.run(
            [python, HERE / "run.py", "--scheduler", "nova", "--results", results, *names],
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,
            check=False,
        )
    assert results.exists(), log.read_text()[-2000:]
    outcomes = [json.loads(line) for line in results.read_text().splitlines()]
    failed = {each["test"]: each["text"][-2000:] for each in outcomes if each["outcome"] != "passed"}
    assert (failed, len(outcomes), ended.returncode) == ({}, len(names), 0)
