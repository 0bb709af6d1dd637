"""Write every secret test: python3 generate.py FOLDER. The same files come out each time."""

import sys
from pathlib import Path

TESTS = {
    "01-first": 1,
    "02-last": 1_000_000,
    "03-middle": 500_000,
    "04-past-the-middle": 500_001,
    "05-third": 3,
    "06-last-but-one": 999_999,
    "07-anywhere": 741_787,
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, number in TESTS.items():
    for ending in ("in", "ans"):
        (target / f"{name}.{ending}").write_text(f"{number}\n")
