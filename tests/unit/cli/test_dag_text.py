"""DAGs in the terminal."""

from __future__ import annotations

import random

from adjudge.cli.dag_text import draw

DIAMOND = {"check": [], "left": ["check"], "right": ["check"], "end": ["left", "right", "check"]}


def test_diamond_with_a_shortcut() -> None:
    drawing = draw(DIAMOND, lambda node: node[:1], lambda node: "green" if node == "check" else "")
    assert drawing.plain.splitlines() == [
        "       ┌───────┐",
        "       │ check │",
        "       │ c     │",
        "       └───────┘",
        "    ╭──────┴───┬───────╮",
        "┌──────┐   ┌───────┐   │",
        "│ left │   │ right │   │",
        "│ l    │   │ r     │   │",
        "└──────┘   └───────┘   │",
        "    ╰──────╮   │       │",
        "           ├───╯       │",
        "           ├───────────╯",
        "        ┌─────┐",
        "        │ end │",
        "        │ e   │",
        "        └─────┘",
    ]
    assert {str(span.style) for span in drawing.spans} >= {"green", "dim"}
    assert all(f"│ {node} " in drawing.plain for node in DIAMOND)


def test_every_edge_connects_two_boxes() -> None:
    """No line ends in the open: whatever has an end has something there."""
    chance = random.Random(7)
    opens = {"│": "ud", "─": "lr", "╭": "dr", "╮": "dl", "╰": "ur", "╯": "ul", "├": "udr", "┤": "udl", "┬": "dlr"}
    opens |= {"┴": "ulr", "┼": "udlr", "╷": "d", "╵": "u", "╴": "l", "╶": "r"}
    steps = {"u": (-1, 0), "d": (1, 0), "l": (0, -1), "r": (0, 1)}
    for _ in range(30):
        names = [f"n{number}" for number in range(chance.randint(1, 14))]
        graph = {
            name: chance.sample(names[:index], k=min(index, chance.randint(0, 3))) for index, name in enumerate(names)
        }
        rows = draw(graph, lambda _: "noop", lambda _: "").plain.splitlines()
        cells = {(row, column): sign for row, line in enumerate(rows) for column, sign in enumerate(line)}
        for (row, column), sign in cells.items():
            for way in opens.get(sign, ""):
                down, right = steps[way]
                is_met = cells.get((row + down, column + right), " ") != " "
                assert is_met, f"{sign} in row {row} leads nowhere:\n" + "\n".join(rows)


def test_empty_graph_and_single_node() -> None:
    assert draw({}, str, str).plain == ""
    assert draw({"a": []}, lambda _: "noop", lambda _: "").plain.splitlines() == [
        "┌──────┐",
        "│ a    │",
        "│ noop │",
        "└──────┘",
    ]
