"""The whole suite in two processes: the tests of pages beside all the others, because a browser mostly waits.

``python -m tests.support.side_by_side`` is what ``make test`` runs; with arguments of its own it is pytest as it is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

PAGES = "tests/browser"


def main(arguments: list[str]) -> int:
    """Run both, show one as it goes and the other when it is done; fail if either fails."""
    pytest = [sys.executable, "-m", "pytest"]
    if arguments:
        return subprocess.run([*pytest, *arguments], check=False).returncode
    with tempfile.TemporaryFile() as kept:
        # The cache of the last failures belongs to one of the two.
        pages = subprocess.Popen(
            [*pytest, PAGES, "-p", "no:cacheprovider"], stdout=kept, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        try:
            others = subprocess.run([*pytest, f"--ignore={PAGES}"], check=False).returncode
            code = pages.wait()
        finally:
            pages.terminate()
        kept.seek(0)
        print(kept.read().decode(errors="replace"), flush=True)
    return others or code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
