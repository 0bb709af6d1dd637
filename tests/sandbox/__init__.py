"""Hostile programs against the sandbox: each case asserts the verdict, and that the host is as before."""
