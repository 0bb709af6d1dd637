"""Handlers: what a worker does for each kind of job."""
