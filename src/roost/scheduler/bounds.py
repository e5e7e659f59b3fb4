"""The bounds of a run: how many claims and candidates it may try, and for how long."""

from roost.scheduler.question import Question


class Bounds:
    """Judges one run by the options ``max_claims_per_instance`` and ``max_run_seconds``.

    ``candidates`` is ``max_candidates_per_host``; 0 is no bound. Another host is tried after it, so that it
    does not end the run.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._claims = question.options.max_claims_per_instance
        self.candidates = question.options.max_candidates_per_host

    def met(self, claims: int) -> str | None:
        """The option and value of the bound that an instance with so many refused claims meets, or None."""
        if self._claims and claims >= self._claims:
            return f"max_claims_per_instance={self._claims}"
        if self._question.expired():
            return f"max_run_seconds={self._question.options.max_run_seconds:g}"
        return None
