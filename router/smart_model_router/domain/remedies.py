"""The way out of a failed call, by its class and by the words of its cause: what to check, set or change, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import FailureClass

if TYPE_CHECKING:
    from smart_model_router.domain.report import Attempt
    from smart_model_router.domain.report_text import ProviderAdvice

_F = FailureClass
CREDENTIAL = re.compile(r"#\d+$")
SHORTEN = "shorten it, or add a target with a larger window"
CHANGE = "change the prompt, or add a target of another provider"
FORBIDDEN, NOT_FOUND = 403, 404
# What the answer begins with, or is told by: one that is cut, or not understood, may speak of pages.
_PAGE = re.compile(
    r"(?:HTTP \d{3}[^:<]{0,60}: )?(?:[\ufeff\s]*<(?:!doctype html|html)\b|a web page titled )", re.IGNORECASE
)
_NO_CONNECTION: Mapping[str, str] = MappingProxyType(
    {
        "not yet valid": "check the clock of this machine, then the server's certificate",
        "has expired": "renew the server's certificate, and check the clock of this machine",
        "mismatch": "check the host name in {address}, or the server's certificate",
        "not valid for": "check the host name in {address}, or the server's certificate",
        "self-signed": "check {address} and that $SSL_CERT_FILE has its authority",
        "self signed": "check {address} and that $SSL_CERT_FILE has its authority",
        "certificate": "check {address} and that $SSL_CERT_FILE has its authority",
        "no TLS": "check whether {address} is to begin with http://, not https://",
        "host name": "check the host name in {address}, and the network",
        "was refused": "check that a server listens at {address}, and the network",
    }
)
"""Words in the reason of a connection that failed -> the way out; the first that fit."""


def is_page(message: str) -> bool:
    """Return whether a provider's answer is a web page, as portals and wrong paths give."""
    return _PAGE.match(message) is not None


def remedy(attempt: Attempt, advice: ProviderAdvice) -> str:
    """The way out, by class and provider; "" where waiting, or another target, is all there is."""
    model = CREDENTIAL.sub("", attempt.target.partition("/")[2])
    address, key = advice.address or "its address", advice.key(attempt.target)
    match attempt.failure_class:
        case _F.AUTH if advice.missing:
            return f"no key is set for it: set {advice.missing}"
        case _F.AUTH if attempt.status == FORBIDDEN:
            return f"let {key} use {model!r}, or take another"
        case _F.AUTH:
            return f"check {key}"
        case _F.QUOTA:
            return f"add credit to the account of {key}"
        case _F.MODEL_GONE:
            return f"check the name {model!r}, and that {key} may use it"
        case _F.MISCONFIGURED:
            return f"check {address}"
        case _F.MALFORMED if is_page(attempt.message):
            return f"check http, https and path of {address}, and whether a portal or a proxy answers in its place"
        case _F.TRANSPORT:
            return _connection(attempt.reason, advice)
        case _F.CONTEXT_LENGTH | _F.TOO_LARGE:
            return SHORTEN
        case _F.CONTENT_FILTERED:
            return CHANGE
        case _:
            return ""


def _connection(reason: str, advice: ProviderAdvice) -> str:
    if advice.proxy:
        return f"it is asked by way of {advice.proxy}: check that proxy, or name the host in $NO_PROXY"
    found = next((way for words, way in _NO_CONNECTION.items() if words in reason), "")
    if found and advice.address:
        return found.format(address=advice.address)
    if found and "{address}" not in found:
        return found
    return f"check {advice.address} and the network" if advice.address else "check the network"
