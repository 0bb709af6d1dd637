"""Exceeds one limit, named by argv[1]: fork, threads, memory, output, recursion, spin, sleep."""

import os
import sys
import threading
import time


def fork() -> None:
    while True:
        try:
            os.fork()
        except OSError:
            continue


def threads() -> None:
    while True:
        try:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        except RuntimeError:
            time.sleep(0.01)


def memory() -> None:
    kept = []
    while True:
        kept.append(bytearray(8 << 20))


def output() -> None:
    while True:
        sys.stdout.write("f" * 65536)


def recursion() -> None:
    sys.setrecursionlimit(10**9)

    def deeper(depth: int) -> int:
        return deeper(depth + 1) + 1

    sys.exit(deeper(0))


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(1000)


{
    "fork": fork,
    "threads": threads,
    "memory": memory,
    "output": output,
    "recursion": recursion,
    "spin": spin,
    "sleep": sleep,
}[sys.argv[1]]()
