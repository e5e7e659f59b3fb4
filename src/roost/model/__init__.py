"""The vocabulary: frozen values that every other room speaks. No I/O, nothing of Roost imported.

inventory      what a provider has of one resource class
request        what is asked for: request groups, the candidate query
allocation     what is held: resources, allocations, consumers
change         what a commit says: each fact as it was and as it is now
spec           what a user wants to run: the request spec of the scheduler
vocabulary     the standard resource classes and traits, and the form of custom ones
"""
