"""Maintenance: many hosts are emptied in few groups (waves), each into all the others.

The plan is the scheduler's (`roost.scheduler.maintenance`); here are the instances that it needs to know.

guests      the instances of the cells, as a plan needs them
types       bodies and responses
operations  the operations, their handlers and policy rules
"""
