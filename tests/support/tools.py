"""Programs that tests run once, such as checkers of configuration files: found, or installed with apt.

``python -m tests.support.servers`` installs them, too. A missing program skips a test, except with ``CI=true``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.install import InstallError, install_with_apt


@dataclass(frozen=True, slots=True)
class Tool:
    """A program and the Debian packages that contain it."""

    name: str
    apt_packages: tuple[str, ...]

    def locate(self) -> Path:
        """Find the program, or install it; raises InstallError."""
        if (found := self._find()) is None:
            install_with_apt(self.apt_packages)
            found = self._find()
        if found is None:
            raise InstallError(f"{' '.join(self.apt_packages)} contains no {self.name}")
        return Path(found)

    def _find(self) -> str | None:
        return shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")

    def run(
        self, arguments: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it; skip the test, or fail with ``CI=true``, if it cannot be had."""
        try:
            program = self.locate()
        except InstallError as error:
            message = f"{self.name} is missing ({error}). Install it: apt-get install {' '.join(self.apt_packages)}."
            if os.environ.get("CI") == "true":
                pytest.fail(message, pytrace=False)
            pytest.skip(message)
        argv = [str(program), *map(str, arguments)]
        environment = {**os.environ, **(env or {})}
        return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


SYSTEMD_ANALYZE = Tool("systemd-analyze", ("systemd",))
PROMTOOL = Tool("promtool", ("prometheus",))
NGINX = Tool("nginx", ("nginx-light",))
TOOLS = (SYSTEMD_ANALYZE, PROMTOOL, NGINX)


def self_signed_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate for localhost that is valid for a day."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, pem, plain))
