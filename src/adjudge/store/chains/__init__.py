"""Chain definitions, runs, nodes, waits and triggers."""
