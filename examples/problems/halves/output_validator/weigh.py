"""Judge a division: weigh.py INPUT ANSWER FEEDBACK/ < OUTPUT. Exit code 42 with a share of the points, or 43."""

import sys
from pathlib import Path

input_file, answer_file, feedback = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def reject(message: str) -> None:
    (feedback / "judgemessage.txt").write_text(message + "\n")
    sys.exit(43)


n, *weights = map(int, Path(input_file).read_text().split())
best = int(Path(answer_file).read_text())
words = sys.stdin.buffer.read(10_000).split()
if len(words) != 1:
    reject(f"{len(words)} words instead of one")
letters = words[0].decode(errors="replace")
if len(letters) != n or not set(letters) <= set("LR"):
    reject(f"not {n} letters L and R")
left = sum(weight for weight, letter in zip(weights, letters, strict=True) if letter == "L")
difference = abs(sum(weights) - 2 * left)
share = 1.0 if difference <= best else 0.5 if 100 * difference <= sum(weights) else 0.1
(feedback / "score_multiplier.txt").write_text(f"{share}\n")
(feedback / "judgemessage.txt").write_text(f"difference {difference}, best known {best}\n")
sys.exit(42)
