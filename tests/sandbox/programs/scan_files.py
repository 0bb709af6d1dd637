"""Searches all visible files for the canary argv[1], and for writable paths outside its own directories."""

import json
import os
import sys

canary = sys.argv[1].encode()
SKIP = {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/sys"}
OWN = ("/work", "/tmp", "/dev/shm", "/var/tmp", "/proc")
found: list[str] = []
writable: list[str] = []


def scan(path: str) -> None:
    if canary in os.fsencode(path):
        found.append(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if canary in os.read(fd, 65536):
            found.append(path)
    except OSError:
        return
    finally:
        os.close(fd)


for folder, subfolders, files in os.walk("/"):
    if folder in SKIP:
        subfolders.clear()
        continue
    if folder.startswith("/proc/"):
        pid = folder.split("/")[2]
        if pid in ("self", "thread-self", str(os.getpid()), "sys") or not pid.isdigit():
            subfolders.clear()
            continue
        subfolders[:] = [name for name in subfolders if name in ("fd", "root", "cwd", "task")]
    if not folder.startswith(OWN) and os.access(folder, os.W_OK):
        writable.append(folder)
    for name in files:
        scan(f"{folder}/{name}")
    for link in subfolders:
        scan(f"{folder}/{link}")

sys.stdout.write(json.dumps({"found": found, "writable": writable, "environment": dict(os.environ)}))
