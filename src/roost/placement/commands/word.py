"""The command that announces an operator's word to all schedulers on the ledger."""

from roost.ledger import Command, State
from roost.model.change import WordAnnounced


class AnnounceWord(Command[None], frozen=True):
    """Announce that operators have changed something (a *word*) since the last announcement.

    A decision that began before the announcement does not commit after it: see
    `roost.scheduler.nodes.operator_words`. ``mark``: above 0, drawn at random by the caller.
    """

    mark: int

    def run(self, state: State) -> None:
        if state.fleet.word != self.mark:
            state.apply(WordAnnounced(state.fleet.word, self.mark))
