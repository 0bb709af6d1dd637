"""The judge: compile, run test cases, aggregate. No database, no Redis; every program runs in the sandbox.

Modules: ``comparators`` (outputs compared in-process), ``checkers`` (outputs checked by programs), ``languages`` and
``compile``, ``case_runner`` and ``interactive`` (one test case), ``scoring`` (verdict and points), ``result_document``,
``pipeline`` (all of it, in order).
"""
