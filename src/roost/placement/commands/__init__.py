"""The commands of the Placement service: one file for each thing that they change.

A command is a frozen value with everything the client asked for. Its `run` validates against the state,
applies changes, and raises a `PlacementError` to refuse.
"""
