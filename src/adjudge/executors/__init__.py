"""The built-in node types, one module for each kind of work; each is registered by entry point.

An executor turns the cfg of a node into work that is safe to repeat. The work itself is in ``services``, ``judge`` and
``packages``, the rows of chains are in ``store``, and ``chains.advance`` decides which node runs next.
"""
