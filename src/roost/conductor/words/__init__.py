"""Operators' words: cells, hosts and nodes are enabled or disabled for new instances.

A word counts from the answer to its request on. The words are stored in the API database
(`roost.state.api_database.operator_words`), each with a version.

words     says a word: stores it, announces it on the ledger, mirrors it to the cell
mirror    mirrors words to flags in the cells' databases, from which agents learn of them
traits    takes the trait that hides a disabled node in placement off an enabled node
drains    events when a disabled cell, host or node begins to be emptied, and when it is empty
"""
