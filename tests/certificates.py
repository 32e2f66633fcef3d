"""Certificates that no authority signed, all of one key, and TLS contexts made with them.

`loopback` is right for 127.0.0.1, `expired` and `future` are out of their time there, `elsewhere` is another host's.
"""

from __future__ import annotations

import base64
import ssl
from functools import cache
from pathlib import Path

_FILES = Path(__file__).parent / "fixtures" / "tls"


@cache
def loopback_pem(name: str = "loopback") -> str:
    """A certificate as PEM; that for 127.0.0.1 is valid until 2126."""
    return ssl.DER_cert_to_PEM_cert((_FILES / f"{name}.certificate.der").read_bytes())


def serving_loopback(directory: Path, name: str = "loopback") -> ssl.SSLContext:
    """The context of a server that shows a certificate; `directory` takes the files that Python wants."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    certificate.write_text(loopback_pem(name))
    body = base64.encodebytes((_FILES / "loopback.key.der").read_bytes()).decode()
    label = "PRIVATE KEY"
    key.write_text(f"-----BEGIN {label}-----\n{body}-----END {label}-----\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def trusting_loopback() -> ssl.SSLContext:
    """The context of a client that accepts the certificate."""
    return ssl.create_default_context(cadata=loopback_pem())
