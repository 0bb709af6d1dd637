"""From the store to the stream, and back to order: what moves messages and what notices that one is missing.

What belongs here: delivering the outbox (``pump``), freeing the jobs of lost workers (``watchdog``), delivering again
what the stream lost (``reconciler``). Any number of each may run at once, anywhere: they share rows, not memory.
"""
