"""The benchmark: every figure that the project quotes is measured and printed here.

fleets    fleets to measure on
decide    decisions of the scheduler, without the store
machine   what the figures were measured on
"""
