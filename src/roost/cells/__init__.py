"""A cell: its nodes, its instances, and the database that holds them.

    tables   instances, their faults, and compute nodes as their agents report them
    rows     between the rows of these tables and values
    reported what agents report, cleaned before it is stored
    cell     everything that is asked of a cell's database; tells its listeners that something changed

Level-triggered: the database says what is to be done (a state other than active or error), and whoever
does it looks there, at start and after every change. A message that is lost costs time, never work.

    assigned ──▶ active ──▶ deleting ──▶ destroyed ──▶ (gone)
       │ ▲
       ▼ │ next alternate
     failed ──▶ error ──▶ ...
"""

from roost.cells.cell import Cell
from roost.cells.tables import SCHEMA

__all__ = ["SCHEMA", "Cell"]
