"""Comparing an output with the answer, in constant memory and without starting a program.

``build`` makes a comparator by name; ``kinds`` lists the names. Programs that check outputs are ``judge.checkers``.
"""

from adjudge.judge.comparators.kinds import KINDS, Comparator, build
from adjudge.judge.comparators.outcome import ACCEPTED, Comparison, Outcome

__all__ = ["ACCEPTED", "KINDS", "Comparator", "Comparison", "Outcome", "build"]
