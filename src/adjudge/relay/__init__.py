"""Publishes jobs from the database to the stream, and repairs lost messages and lost jobs.

The ``dispatcher`` publishes the outbox; the ``watchdog`` module releases jobs of lost workers and requeues jobs whose
message was lost. Any number of each may run at once: they share rows, not memory.
"""
