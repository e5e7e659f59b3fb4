"""BMCs as a process: sushy-tools' emulator with its fake machines, at a free loopback port.

Its machines take up to eleven seconds to switch; here they take ``delay``.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import httpx

from roost.bench.loopback import free_port
from roost.model.names import provider_uuid

SECONDS = 60.0


def system_of(number: int) -> str:
    """The id of a machine."""
    return provider_uuid(f"emulated/{number}")


class Emulator:
    """A running emulator; it is killed at the end of a ``with`` block.

    ``on``: the numbers of machines that are switched on at the start. ``users``: a file of htpasswd whose
    users alone may log in.
    """

    def __init__(
        self,
        folder: Path,
        machines: int,
        *,
        on: frozenset[int] = frozenset(),
        delay: float = 0.0,
        users: Path | None = None,
        port: int | None = None,
    ) -> None:
        self._folder = folder
        self._systems = [
            {
                "uuid": system_of(number),
                "name": f"machine-{number}",
                "power_state": "On" if number in on else "Off",
                "nics": [],
            }
            for number in range(machines)
        ]
        self._delay = delay
        self._users = users
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it; machines are as they were at its end."""
        state = self._folder / f"bmc-{self.port}"
        state.mkdir(parents=True, exist_ok=True)
        plan = {
            "port": self.port,
            "delay": self._delay,
            "config": {
                "SUSHY_EMULATOR_FAKE_DRIVER": True,
                "SUSHY_EMULATOR_FAKE_SYSTEMS": self._systems,
                "SUSHY_EMULATOR_STATE_DIR": str(state),
                "SUSHY_EMULATOR_AUTH_FILE": None if self._users is None else str(self._users),
            },
        }
        with (state / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, json.dumps(plan)], stdout=log, stderr=log, cwd=state
            )
        # Not at the top: this file is also the program of the emulator, which runs without the tests' folder.
        from support.waiting import Deadline

        until = Deadline(SECONDS)
        while True:
            try:
                httpx.get(f"{self.url}/redfish/v1/")
                return
            except httpx.TransportError:
                if until.passed or self._process.poll() is not None:
                    raise AssertionError((state / "log").read_text()) from None
                time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def system(self, number: int) -> dict[str, Any]:
        """What it tells of a machine."""
        answer = httpx.get(f"{self.url}/redfish/v1/Systems/{system_of(number)}")
        answer.raise_for_status()
        return answer.json()

    def is_on(self, number: int) -> bool:
        """Whether a machine is on."""
        return self.system(number)["PowerState"] == "On"

    def switch(self, number: int, on: bool) -> None:
        """Switch a machine, as somebody at the machine or its system does."""
        answer = httpx.post(
            f"{self.url}/redfish/v1/Systems/{system_of(number)}/Actions/ComputerSystem.Reset",
            json={"ResetType": "On" if on else "ForceOff"},
        )
        answer.raise_for_status()


def serve(plan: dict[str, object]) -> None:
    """Serve by a plan of `Emulator`, for ever."""
    from sushy_tools.emulator import main
    from sushy_tools.emulator.resources.systems import fakedriver

    delay = plan["delay"]
    # The moment of a change is ``int(time.time()) + random.randint(1, 11)``.
    fakedriver.random.randint = lambda low, high: delay
    main.app.configure(extra_config=plan["config"])
    main.app.run(host="127.0.0.1", port=plan["port"], threaded=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
