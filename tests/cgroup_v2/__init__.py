"""Runs the sandbox tests on cgroup v2 in a virtual machine, for hosts that have only v1."""
