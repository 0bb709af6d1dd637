"""Comparing an output with the answer, in constant memory and without starting a program.

``build`` makes a comparator by name; ``kinds`` lists the names. Programs that check outputs are ``judge.checkers``.
"""

from adjudge.judge.comparators.builtin import BUILTIN_COMPARATORS, Comparator, build_comparator
from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, ComparisonStatus

__all__ = ["ACCEPTED", "BUILTIN_COMPARATORS", "Comparator", "Comparison", "ComparisonStatus", "build_comparator"]
