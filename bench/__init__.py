"""Benchmarks: one module each, run by ``make bench-NAME``.

Each interleaves ours with what it is compared with, in the same run on the same machine, and ends with a table. No
figure is ever written by hand.
"""
