"""Values and rules, pure and standard library only.

What belongs here: what is legal, what a value means, how values combine. What does not: anything that reads a
clock, a file, a socket or a database.
"""
