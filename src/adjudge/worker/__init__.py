"""Workers: read a hint, win the job, run it, write what came of it.

What belongs here: the loop and its parts (``loop``, ``lease``, ``finisher``, ``reclaim``), and the handlers that turn a
kind of job into work. What does not: what a verdict is (``judge``), what a row means (``store``).
"""
