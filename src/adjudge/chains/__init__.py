"""Chains: DAGs of nodes that run as jobs and advance in the transactions that finish them.

What belongs here: the engine (``engine``, ``advance``), the contract of node types (``executor``), what starts runs
(``triggers``). What does not: the node types (``executors``), the rules of DAGs (``domain.chain``), SQL (``store``),
running jobs (``worker``).
"""
