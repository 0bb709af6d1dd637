"""The post: post.py INPUT ANSWER FEEDBACK/ < OUTPUT, once after each run; exit code 42 or 43.

After the first run it delivers the cards as the next run's input. A note in the feedback folder, which is kept between
the runs, tells it which run it is.
"""

import re
import sys
from pathlib import Path

answer, feedback = Path(sys.argv[2]).read_text(), Path(sys.argv[3])
posted = feedback / "posted.txt"
words = sys.stdin.buffer.read(100_000).decode(errors="replace").split()


def end(code: int, message: str) -> None:
    with (feedback / "judgemessage.txt").open("a") as notes:
        notes.write(message + "\n")
    sys.exit(code)


if not all(re.fullmatch(r"[0-9]{1,16}", word) for word in words):
    end(43, "something is printed that is no number")
numbers = [int(word) for word in words]
if posted.exists():
    if len(numbers) != 1:
        end(43, f"Bela prints {len(numbers)} numbers")
    end(42 if numbers[0] == int(answer) else 43, f"Bela reads {numbers[0]}")
cards = sorted(numbers[1:])
if not numbers or numbers[0] != len(cards):
    end(43, "Ada does not print k and then k cards")
if len(set(cards)) != len(cards) or not set(cards) <= set(range(1, 51)):
    end(43, "Ada sends cards that she does not have")
posted.write_text(f"{len(cards)}\n")
(feedback / "nextpass.in").write_text(f"read {len(cards)}\n{' '.join(map(str, cards))}\n")
end(42, f"Ada sends {len(cards)} cards")
