"""Calls of Nova's scheduler that arrive twice, as after an acknowledgement that the broker lost."""

import json
import random
import threading
from typing import Self

import kombu
import kombu.exceptions

QUEUE = "scheduler"
"""The queue and routing key of the calls."""


class Repeater:
    """Gets a copy of each call, and sends a share of them once more, in a thread.

    A copy has an id of its own: oslo.messaging drops a message whose id the same process has seen. Both
    copies are answered; the caller takes the answer that comes first.
    """

    def __init__(self, url: str, share: float, seed: int) -> None:
        self.repeated = 0
        self._url = url.replace("rabbit://", "amqp://", 1)
        self._share = share
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            try:
                with kombu.Connection(self._url, connect_timeout=2) as connection:
                    self._repeat(connection)
            except (OSError, kombu.exceptions.OperationalError):
                continue  # the broker was killed, and comes back

    def _repeat(self, connection: kombu.Connection) -> None:
        exchange = kombu.Exchange("nova", type="topic", durable=False)
        copies = kombu.Queue(
            "copies-for-the-repeater", exchange, QUEUE, durable=False, exclusive=True, no_ack=True
        )
        producer = connection.Producer()
        seen: list[kombu.Message] = []
        with connection.Consumer(copies, on_message=seen.append, no_ack=True):
            while not self._ended.is_set():
                try:
                    connection.drain_events(timeout=0.2)
                except TimeoutError:
                    continue
                for message in seen:
                    self._send(producer, message)
                seen.clear()

    def _send(self, producer: kombu.Producer, message: kombu.Message) -> None:
        envelope = json.loads(message.body)
        call = json.loads(envelope["oslo.message"])
        if call.get("method") != "select_destinations" or self._random.random() >= self._share:
            return
        envelope["oslo.message"] = json.dumps({**call, "_unique_id": f"{call['_unique_id']}-again"})
        # Past the exchange, so that the copy is not copied.
        producer.publish(
            json.dumps(envelope), routing_key=QUEUE, content_type="application/json", content_encoding="utf-8"
        )
        self.repeated += 1
