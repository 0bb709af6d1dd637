"""Built-in comparators: compare an output with the answer in constant memory, without starting a program.

``build_comparator`` makes a comparator by name; ``builtin`` lists the names. Checker programs are in
``judge.checkers``.
"""

from adjudge.judge.comparators.builtin import BUILTIN_COMPARATORS, Comparator, build_comparator
from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, ComparisonStatus

__all__ = ["ACCEPTED", "BUILTIN_COMPARATORS", "Comparator", "Comparison", "ComparisonStatus", "build_comparator"]
