"""Write every secret test: python3 generate.py FOLDER. The same files come out each time."""

import random
import sys
from pathlib import Path

dice = random.Random(8)
TESTS = {
    "01-no-cards": 0,
    "02-one-card": 1,
    "03-small": 50,
    "04-seventeen-bits": 2**17 - 1,
    "05-thirty-two-bits": 2**31 + 2**32 + 5,
    "06-random": int(dice.random() * 2**20),
    "07-random": int(dice.random() * 2**20),
    "08-all-cards": 2**50 - 1,
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, number in TESTS.items():
    (target / f"{name}.in").write_text(f"write {number}\n")
    (target / f"{name}.ans").write_text(f"{number}\n")
