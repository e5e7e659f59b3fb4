"""A scheduler keeps answers to requests with a key, within bounds."""

import asyncio

from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.scheduler.api.kept_answers import SchedulerAnswers


def answer(number: int, size: int) -> KeyedAnswer:
    return KeyedAnswer(IdempotencyKey(str(number), "asked", 1.0), 200, b"x" * size)


def kept(*given: KeyedAnswer, most: int = 10, most_bytes: int = 100) -> list[str]:
    """The ids of the answers that are known after some were kept."""

    async def run() -> list[str]:
        answers = SchedulerAnswers(None, most, most_bytes)
        for each in given:
            await answers.keep(each)
        return [each for each in "0123456789" if await answers.find(answer(int(each), 0).key) is not None]

    return asyncio.run(run())


def test_answers_are_forgotten_by_their_number_and_by_their_bytes_the_oldest_first() -> None:
    assert kept(*(answer(number, 1) for number in range(5)), most=3) == ["2", "3", "4"]
    assert kept(*(answer(number, 40) for number in range(5))) == ["3", "4"]
    assert kept(answer(0, 40), answer(1, 40), answer(0, 40), answer(2, 20)) == ["0", "1", "2"]
    assert kept(answer(0, 60), answer(1, 101)) == []
    assert kept(answer(1, 101), answer(2, 60), answer(3, 40)) == ["2", "3"]
