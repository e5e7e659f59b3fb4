"""The model: immutable value types that every other room exchanges. No I/O; imports no other room.

inventory      one provider's inventory of one resource class
request        request groups and the allocation candidate query
allocation     allocations, consumers, allocation candidates
change         the changes that a commit contains, each with the fact before and after
spec           the scheduler's input and output: flavor, server group, request spec, destination
host           the report of a compute host
instance       instances, build requests, build results, faults
record         scheduler runs and claim attempts, as the records keep them
vocabulary     standard resource classes and traits, and the syntax of custom names
text           cleaning of text from outside
errors         the base class of errors that an operator can correct
"""
