"""The only SQL. The database is the truth; everything else drives or shows it.

What belongs here: whatever reads or changes a row. What does not: deciding what a row means (``domain``), moving
messages (``relay``, ``stream``), judging.
"""

from adjudge.store.driver import Database, Operation, Tx
from adjudge.store.opening import open_database

__all__ = ["Database", "Operation", "Tx", "open_database"]
