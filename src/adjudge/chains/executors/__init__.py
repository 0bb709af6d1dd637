"""The node types that Adjudge brings, a file for each kind of work; each is registered by entry point.

What belongs here: turning a node's cfg into work that can be done twice without harm. What does not: the work itself,
which other rooms do, and anything about rows of chains (``store``) or what comes next (``advance``).
"""
