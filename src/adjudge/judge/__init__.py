"""The judge: compile → cases → fold. No database, no Redis; every program it starts runs in the sandbox.

Rooms: ``comparators`` (outputs compared in-process), ``checkers`` (outputs compared by programs), ``languages`` and
``compile`` (sources to something runnable), ``run`` and ``interactive`` (one test), ``scoring`` (tests to a verdict
and points), ``result`` (the document that a verdict is), ``pipeline`` (all of it, in order).
"""
