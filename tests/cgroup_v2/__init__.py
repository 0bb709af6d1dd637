"""The hostile suite on cgroup v2, in a virtual machine: for hosts that have only v1, and on a kernel not theirs."""
