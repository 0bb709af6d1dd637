"""What is remembered for a while and may be forgotten at any time.

What belongs here: token buckets (``buckets``), and copies of what the store holds. What does not: anything that would
be missed. Whoever asks gets the same answer without Redis, or an error that says that Redis is away.
"""
