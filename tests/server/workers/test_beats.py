"""Beats of workers, and the clock by which their parent judges that they lack."""

import os

from roost.server.workers.beats import LONGEST_STEP_SECONDS, Beats, RunClock


def test_beats_of_a_forked_process_are_seen() -> None:
    beats = Beats()
    pid = os.fork()
    if pid == 0:
        for _ in range(3):
            beats.beat()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert beats.count == 3
    beats.close()


def test_a_pause_of_the_machine_is_hardly_time_that_the_parent_has_run() -> None:
    times = iter([100.0, 100.5, 1_000.0, 1_001.0])
    clock = RunClock(lambda: next(times))
    assert [clock.now() for _ in range(3)] == [0.5, 0.5 + LONGEST_STEP_SECONDS, 1.5 + LONGEST_STEP_SECONDS]
