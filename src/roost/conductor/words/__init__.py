"""Operators' words: cells, hosts and nodes are enabled or disabled for new instances.

A word counts from the answer to its request on. The words are stored in the API database
(`roost.state.api_database.operator_words`), each with a version.

words       says a word: stores it, announces it on the ledger, mirrors it to the cell and to placement
drains      events when a disabled cell, host or node begins to be emptied, and when it is empty
departures  asks instances on what is drained to move, within the limits of moves at once
"""
