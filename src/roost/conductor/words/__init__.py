"""Operators' words on cells, hosts and nodes, which count from the answer on.

store     the words in the API database, each with a version
words     says a word: keeps it, announces it on the ledger, mirrors it to the cell
drains    what is disabled is emptied: told when that begins and ends
mirror    the flags in the cells' databases, from which agents learn of words
traits    the trait that hides a disabled node in placement is taken off a node that is enabled
"""
