"""The only SQL. The database is the truth; everything else drives or shows it.

What belongs here: whatever reads or changes a row. What does not: deciding what a row means (``domain``), moving
messages (``relay``, ``stream``), judging.
"""

from adjudge.store.engine.connect import open_database
from adjudge.store.engine.driver import Database, Operation, Tx

__all__ = ["Database", "Operation", "Tx", "open_database"]
