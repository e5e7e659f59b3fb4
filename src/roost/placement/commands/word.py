"""The command that announces an operator's word to all who decide on the ledger."""

from roost.ledger import Command, State
from roost.model.change import WordAnnounced


class AnnounceWord(Command[None], frozen=True):
    """Announce that operators have said something since the last announcement.

    No decision that was begun before commits after it: see `roost.scheduler.nodes.operator_words`. ``mark``:
    above 0, drawn at random by the caller.
    """

    mark: int

    def run(self, state: State) -> None:
        if state.fleet.word != self.mark:
            state.apply(WordAnnounced(state.fleet.word, self.mark))
