"""The views of `roost top`, each on a tab of its own.

pane       the interface of a pane, the part of it that is asked for, and a table with a head
columns    cells in columns of fixed width
overview   use by resource class, the fullest hosts, the rates of a service
hosts      hosts by use, state or name
cells      cells
devices    hosts of GPUs and other devices
refusals   the newest refusals with their causes
"""
