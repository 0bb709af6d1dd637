"""``python -m adjudge`` is ``adjudge``."""

from adjudge.cli import main

main(prog_name="adjudge")
