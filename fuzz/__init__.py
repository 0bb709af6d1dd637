"""Coverage-guided fuzzing of what reads bytes that it did not write: the launcher and the report reader."""
