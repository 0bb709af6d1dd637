"""A new problem that is complete and can be judged: a starting point to edit."""

from __future__ import annotations

_YAML = """problem_format_version: 2025-09
type: pass-fail
name: {title}
uuid: {uuid}
license: unknown
limits:
  time_limit: 1
  memory: 256
keywords: []
"""
_STATEMENT = """Read a list of numbers and print their sum.

## Input

The first line holds $n$ ($1 \\le n \\le 100\\,000$). The second line holds $n$ integers, each between $-10^9$ and
$10^9$, separated by single spaces.

## Output

Print one integer: the sum of the $n$ numbers.
"""
_VALIDATOR = '''"""Accept (exit code 42) exactly the inputs that keep the statement's promises."""

import re
import sys

text = sys.stdin.read()
match = re.fullmatch(r"([1-9][0-9]*)\\n((?:0|-?[1-9][0-9]*)(?: (?:0|-?[1-9][0-9]*))*)\\n", text)
if not match:
    sys.exit("the input is not n, then n integers, on two lines")
count, numbers = int(match[1]), [int(word) for word in match[2].split(" ")]
if not 1 <= count <= 100_000 or len(numbers) != count:
    sys.exit(f"n is {count} and {len(numbers)} numbers follow")
if any(abs(number) > 10**9 for number in numbers):
    sys.exit("a number is out of range")
sys.exit(42)
'''
_PYTHON = """n = int(input())
print(sum(int(word) for word in input().split()))
"""
_CPP = """#include <iostream>

int main() {
    int n;
    std::cin >> n;
    long long sum = 0;
    for (long long number; n > 0 && std::cin >> number; --n) sum += number;
    std::cout << sum << '\\n';
}
"""
_WRONG = """#include <iostream>

// The sum does not fit into 32 bits.
int main() {
    int n;
    std::cin >> n;
    unsigned sum = 0;
    for (int number; n > 0 && std::cin >> number; --n) sum += number;
    std::cout << static_cast<int>(sum) << '\\n';
}
"""
_INVALID = "2\n1 2 3\n"


def scaffold(title: str, uuid: str) -> dict[str, bytes]:
    """The files of a new package by name."""
    large = [10**9] * 5
    contents = {
        "problem.yaml": _YAML.format(title=_quoted(title), uuid=uuid),
        "statement/problem.en.md": _STATEMENT,
        "data/sample/1.in": "3\n1 2 3\n",
        "data/sample/1.ans": "6\n",
        "data/secret/01-large.in": f"{len(large)}\n{' '.join(map(str, large))}\n",
        "data/secret/01-large.ans": f"{sum(large)}\n",
        "data/invalid_input/too-many.in": _INVALID,
        "input_validators/validate.py": _VALIDATOR,
        "submissions/accepted/solution.py": _PYTHON,
        "submissions/accepted/solution.cpp": _CPP,
        "submissions/wrong_answer/overflow.cpp": _WRONG,
    }
    return {name: text.encode() for name, text in contents.items()}


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
