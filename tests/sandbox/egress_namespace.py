"""Tests the egress list in a private network namespace with three servers on the loopback interface.

Run as a program (``python -m tests.sandbox.egress_namespace STATE``): it enters the
namespace, runs one program with one egress entry, and prints as JSON which connections succeeded and what each server
got.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import Final

from adjudge.sandbox import Egress, Limits, Sandbox, SandboxRunSpec

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
_PORT, _OTHER_PORT = 7101, 7102
_NAMES = "127.0.0.1 localhost\n127.0.0.1 allowed.test\n127.0.0.2 other.test\n"

PROGRAM: Final = f"""
import json, socket

def reach(host, port, kind=socket.SOCK_STREAM, family=socket.AF_INET):
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(30)
            client.connect((host, port))
            client.sendall(b"ping")
            return client.recv(64).decode()
    except OSError as error:
        return type(error).__name__

print(json.dumps({{
    "listed host and port": reach("allowed.test", {_PORT}),
    "second connection": reach("allowed.test", {_PORT}),
    "other port": reach("allowed.test", {_OTHER_PORT}),
    "other host by name": reach("other.test", {_PORT}),
    "other host by address": reach("127.0.0.2", {_PORT}),
    "real address of listed host": reach("127.0.0.1", {_PORT}),
    "address without route": reach("192.0.2.1", {_PORT}),
    "UDP": reach("127.0.1.1", {_PORT}, socket.SOCK_DGRAM),
    "IPv6": reach("::1", {_PORT}, family=socket.AF_INET6),
}}))
"""


def _check(result: int, step: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{step}: {os.strerror(ctypes.get_errno())}")


def enter_private_network(hosts: Path) -> None:
    """Enter namespaces that have only the loopback interface and only the host names of ``hosts``."""
    user, group = os.geteuid(), os.getegid()
    kinds = _CLONE_NEWNS | _CLONE_NEWNET | (_CLONE_NEWUSER if user else 0)
    _check(_LIBC.unshare(kinds), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _check(_LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
    _check(_LIBC.mount(os.fsencode(hosts), b"/etc/hosts", None, _MS_BIND, None), "mount hosts")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP | _IFF_RUNNING))


async def main(state: Path) -> None:
    """Start the servers, run the program and print the result."""
    connections: dict[str, int] = {"allowed": 0, "other port": 0, "other host": 0}

    async def serve(name: str, address: str, port: int) -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections[name] += 1
            await reader.read(64)
            writer.write(f"hello from {name}".encode())
            writer.close()

        return await asyncio.start_server(answer, address, port)

    addresses = (("allowed", "127.0.0.1", _PORT), ("other port", "127.0.0.1", _OTHER_PORT))
    servers = [await serve(*address) for address in (*addresses, ("other host", "127.0.0.2", _PORT))]
    spec = SandboxRunSpec(
        argv=("/usr/bin/python3", "-I", "-c", PROGRAM),
        limits=Limits(cpu_ms=20_000, wall_ms=60_000),
        egress=(Egress("allowed.test", _PORT),),
    )
    async with Sandbox(unsafe=True, state_dir=state) as sandbox:
        report = await sandbox.run(spec)
    for server in servers:
        server.close()
    result = {"verdict": report.verdict, "stderr": report.stderr.decode(), "connections": connections}
    sys.stdout.write(json.dumps(result | {"reached": json.loads(report.stdout or b"null")}))


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile("w", prefix="hosts-") as names:
        names.write(_NAMES)
        names.flush()
        Path(names.name).chmod(0o644)
        enter_private_network(Path(names.name))
        asyncio.run(main(Path(sys.argv[1])))
