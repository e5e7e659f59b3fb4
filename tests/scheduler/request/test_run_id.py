"""Ids of scheduler runs."""

import time
import uuid

from roost.scheduler.request.scheduling_request import new_run_id


def test_an_id_is_a_uuid_of_version_7_with_its_time():
    before = time.time_ns() // 1_000_000
    made = new_run_id()
    after = time.time_ns() // 1_000_000

    parsed = uuid.UUID(made)
    assert str(parsed) == made
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert before <= parsed.int >> 80 <= after


def test_ids_of_one_millisecond_differ_and_all_random_bits_vary():
    made = [uuid.UUID(new_run_id()).int for _ in range(500)]
    assert len(set(made)) == 500
    ever, always = 0, ~0
    for each in made:
        ever |= each
        always &= each
    varying = (ever & ~always) & ((1 << 80) - 1)
    assert varying.bit_count() == 74
