"""Faults at random, from a seed: what is killed, stopped, cut off and restarted when, and for how long."""

import contextlib
import heapq
import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence

from chaos.links import Link, Network
from chaos.programs import Program
from roost.bench.server_process import ServerProcess
from support.stopping import stopped

Undo = Callable[[], None]


class Weather:
    """Does faults to programs, links and a database server, one after another, and undoes each in time.

    ``gap``: the mean seconds between two. ``lease``: seconds after which a process that is stopped may have
    been replaced: some stay stopped for longer. ``most``: faults at a time. ``dead``: told of hosts whose
    agents have ended and that lose their power now, None: none does; told of none when they have it again.
    """

    def __init__(
        self,
        seed: str,
        programs: Sequence[Program],
        network: Network,
        server: ServerProcess | None,
        *,
        gap: float = 0.5,
        lease: float = 8.0,
        most: int = 4,
        dead: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self.story: list[str] = []
        self.done: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._programs = list(programs)
        self._network = network
        self._server = server
        self._gap, self._lease, self._most = gap, lease, most
        self._dead = dead
        self._is_dark = False
        self._busy: set[object] = set()
        self._undoing: list[tuple[float, int, object, Undo]] = []
        self._numbers = itertools.count()
        self._began = 0.0

    def run(self, is_over: Callable[[float], bool]) -> None:
        """Do faults until it is over, by the seconds since the begin; all are undone then."""
        self._began = time.monotonic()
        following = self._draw.expovariate(1 / self._gap)
        while not is_over(self._now()):
            self._supervise()
            due = min(following, self._undoing[0][0] if self._undoing else following)
            time.sleep(max(0.0, min(due - self._now(), 0.5)))
            if self._undoing and self._undoing[0][0] <= self._now():
                self._undo()
            elif self._now() >= following:
                following = self._now() + self._draw.expovariate(1 / self._gap)
                if len(self._undoing) < self._most:
                    self._do()
        while self._undoing:
            self._undo()

    def _supervise(self) -> None:
        """Start programs that have ended by themselves, as systemd does."""
        for program in self._programs:
            if program not in self._busy:
                program.start()

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _undo(self) -> None:
        _, _, thing, undo = heapq.heappop(self._undoing)
        self.story.append(f"{self._now():7.2f} {thing} is well again")
        undo()
        self._busy.discard(thing)

    def _do(self) -> None:
        kinds: list[tuple[float, str, Callable[[], tuple[object, float, Undo] | None]]] = [
            (4, "killed", self._kill),
            (3, "stopped", self._pause),
            (1, "restarted", self._restart),
            (1, "reshaped", self._reshape),
            (1, "without power", self._darken),
            (2, "cut", self._cut),
            (2, "held", self._hold),
            (1, "refused", self._refuse),
            (0.7, "database killed", self._kill_database),
            (0.5, "database stopped", self._pause_database),
        ]
        [(_, name, kind)] = self._draw.choices(kinds, [weight for weight, _, _ in kinds])
        done = kind()
        if done is None:
            return
        thing, seconds, undo = done
        self.done[name] += 1
        self.story.append(f"{self._now():7.2f} {thing} is {name} for {seconds:.2f} s")
        self._busy.add(thing)
        heapq.heappush(self._undoing, (self._now() + seconds, next(self._numbers), thing, undo))

    def _program(self) -> Program | None:
        free = [each for each in self._programs if each not in self._busy]
        return self._draw.choice(free) if free else None

    def _link(self) -> Link | None:
        free = [each for each in self._network.links if each not in self._busy]
        return self._draw.choice(free) if free else None

    def _seconds(self) -> float:
        """Short, or longer than a lease."""
        if self._draw.random() < 0.6:
            return self._draw.uniform(0.1, 3.0)
        return self._draw.uniform(1.1, 1.8) * self._lease

    def _kill(self) -> tuple[object, float, Undo] | None:
        if (program := self._program()) is None:
            return None
        if self._draw.random() < 0.3 and program.kill_workers():
            return program, 0.0, program.start
        program.kill()
        return program, self._draw.choice((0.0, self._seconds())), program.start

    def _restart(self) -> tuple[object, float, Undo] | None:
        if (program := self._program()) is None:
            return None
        program.end()
        return program, self._seconds(), program.start

    def _reshape(self) -> tuple[object, float, Undo] | None:
        """Have hosts begin with their devices elsewhere. Their agents may be killed while they do."""
        able = [each for each in self._programs if each.turn is not None and each not in self._busy]
        if not able:
            return None
        program = self._draw.choice(able)
        assert program.turn is not None
        program.kill()
        program.turn()
        return program, 0.0, program.start

    def _darken(self) -> tuple[object, float, Undo] | None:
        """Have hosts lose their power, one process of agents at a time.

        Half of them are shut down in order, as by a power supply that tells: nobody has to wait until it is
        certain that their agents are gone.
        """
        able = [each for each in self._programs if each.hosts and each not in self._busy]
        if not able or self._dead is None or self._is_dark:
            return None
        program, dead = self._draw.choice(able), self._dead
        if self._draw.random() < 0.5:
            program.end_or_kill(self._lease)
        else:
            program.kill()
        dead(program.hosts)
        self._is_dark = True

        def undo() -> None:
            dead(())
            self._is_dark = False
            program.start()

        return program, self._draw.uniform(1.0, 3.0) * self._lease, undo

    def _pause(self) -> tuple[object, float, Undo] | None:
        if (program := self._program()) is None:
            return None
        program.signal_all(signal.SIGSTOP)
        return program, self._seconds(), lambda: program.signal_all(signal.SIGCONT)

    def _cut(self) -> tuple[object, float, Undo] | None:
        if (link := self._link()) is None:
            return None
        self._network.cut(link)
        return link, 0.0, lambda: None

    def _hold(self) -> tuple[object, float, Undo] | None:
        if (link := self._link()) is None:
            return None
        self._network.hold(link, True)

        def undo() -> None:
            if is_lost:
                self._network.cut(link)
            self._network.hold(link, False)

        is_lost = self._draw.random() < 0.5
        return link, self._seconds(), undo

    def _refuse(self) -> tuple[object, float, Undo] | None:
        if (link := self._link()) is None:
            return None
        self._network.refuse(link, True)
        return link, self._seconds(), lambda: self._network.refuse(link, False)

    def _kill_database(self) -> tuple[object, float, Undo] | None:
        server = self._server
        if server is None or server in self._busy:
            return None
        if self._draw.random() < 0.5:
            server.kill()
        else:
            server.stop()
        return server, self._draw.uniform(0.1, 4.0), server.start

    def _pause_database(self) -> tuple[object, float, Undo] | None:
        server = self._server
        if server is None or server in self._busy:
            return None
        stopping = contextlib.ExitStack()
        stopping.enter_context(stopped(server))
        return server, self._seconds(), stopping.close
