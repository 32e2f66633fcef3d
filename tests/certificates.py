"""A certificate for 127.0.0.1 that no authority signed, and TLS contexts made with it."""

from __future__ import annotations

import base64
import ssl
from functools import cache
from pathlib import Path

_FILES = Path(__file__).parent / "fixtures" / "tls"


@cache
def loopback_pem() -> str:
    """The certificate (for 127.0.0.1, until 2126) as PEM."""
    return ssl.DER_cert_to_PEM_cert((_FILES / "loopback.certificate.der").read_bytes())


def serving_loopback(directory: Path) -> ssl.SSLContext:
    """The context of a server that shows the certificate; `directory` takes the files that Python wants."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    certificate.write_text(loopback_pem())
    body = base64.encodebytes((_FILES / "loopback.key.der").read_bytes()).decode()
    label = "PRIVATE KEY"
    key.write_text(f"-----BEGIN {label}-----\n{body}-----END {label}-----\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def trusting_loopback() -> ssl.SSLContext:
    """The context of a client that accepts the certificate."""
    return ssl.create_default_context(cadata=loopback_pem())
