"""The built-in node types, one module for each kind of work; each is registered by entry point.

What belongs here: turning the cfg of a node into work that may be repeated without harm. What does not: the work itself
(``services``, ``judge``, ``packages``), rows of chains (``store``), which node runs next (``chains.advance``).
"""
