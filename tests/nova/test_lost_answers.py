"""Nova gives up a call of its scheduler that has claimed, and the audit frees the claim: lost_answers.py."""

import json
import subprocess
from pathlib import Path

import pytest

from roost.bench.server_process import die_with_parent
from support.nova import NOT_INSTALLED, nova_python

HERE = Path(__file__).parent / "functional"
CASES = ["test_boot", "test_evacuation", "test_resize", "test_unshelve"]


@pytest.mark.nightly
def test_claims_whose_answer_nova_never_got_are_freed(tmp_path: Path) -> None:
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    names = [f"lost_answers.LostAnswers.{each}" for each in CASES]
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
    assert (failed, len(outcomes), ended.returncode) == ({}, len(CASES), 0)
