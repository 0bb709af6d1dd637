"""DMOJ's problem format: ``init.yml``. Keys that contain Python are rejected, never evaluated."""
