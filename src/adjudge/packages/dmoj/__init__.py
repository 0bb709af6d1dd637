"""DMOJ's problem format: ``init.yml``. Keys that hold Python are refused, never evaluated."""
