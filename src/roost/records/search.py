"""The criteria of a search for runs."""

from collections.abc import Iterable

import msgspec

from roost.model.record import RESULTS, Attempt, Run
from roost.records.rows import RunRow


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that meet every criterion that is set; without any, all runs.

    - ``run``: the run's id. ``request_id``: the request's own id or the one that the user's client gave it.
    - ``instance``: one of the instances to place, also if the run made no attempt for it.
    - ``host``, ``result``: one attempt of the run (for ``instance``, if that is set) was on this host and
      has this result, one of `roost.model.record.RESULTS`.
    - ``project_id``, ``user_id``: the owner of the request.
    - ``since``, ``until``: the run started at or after, and before; seconds since the epoch.
    - ``refused``: the run placed too few instances.
    - ``before``: the id of a run; the selected runs were recorded before it. The last run of a page is the
      ``before`` of the next page.

    Raises:
        ValueError: ``result`` is not one of `roost.model.record.RESULTS`.
    """

    run: str | None = None
    request_id: str | None = None
    instance: str | None = None
    host: str | None = None
    result: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    since: float | None = None
    until: float | None = None
    refused: bool = False
    before: str | None = None

    def __post_init__(self) -> None:
        if self.result is not None and self.result not in RESULTS:
            raise ValueError(f"result is {self.result!r}, not one of {', '.join(RESULTS)}")

    @property
    def of_attempts(self) -> bool:
        """True if a criterion of attempts is set."""
        return self.host is not None or self.result is not None

    def takes_run(self, row: RunRow | Run) -> bool:
        """Return whether a run meets the criteria of runs; ``before`` is ignored."""
        return (
            self.run in (None, row.id)
            and self.request_id in (None, row.request_id, row.global_request_id)
            and (self.instance is None or self.instance in row.instances)
            and self.project_id in (None, row.project_id)
            and self.user_id in (None, row.user_id)
            and (self.since is None or row.started_at >= self.since)
            and (self.until is None or row.started_at < self.until)
            and (not self.refused or row.refusal is not None)
        )

    def takes_attempts(self, attempts: Iterable[Attempt]) -> bool:
        """Return whether one of a run's attempts meets the criteria of attempts."""
        return not self.of_attempts or any(
            self.host in (None, each.host)
            and self.result in (None, each.result)
            and self.instance in (None, each.instance)
            for each in attempts
        )
