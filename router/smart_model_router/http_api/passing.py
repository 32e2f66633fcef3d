"""An HTTP request of a path that passes through: what of it goes on to the provider, beside its body."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping

from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.ports import PassedCall
from smart_model_router.domain.request import RequestOptions
from smart_model_router.http_api.api_request import read_options

_SENT = ("content-type", "accept")
"""The client's headers that say what the bodies are; forwarded_headers.py has all others that go on."""
_VALUE = re.compile(r"[ -~]{1,1000}")
_QUERY = re.compile(r"[!-~]*")
_AZURES = "api-version="
"""The parameter that AzureOpenAI always adds: it is about us. A provider of that kind has its own version."""


def read_call(
    path: str, headers: Mapping[str, str], query: str, body: AsyncIterator[bytes], length: int | None, deployment: str
) -> PassedCall:
    """The call that a request asks for. Header names are lower-case. Raises InvalidRequest."""
    sent = {name: headers[name] for name in _SENT if headers.get(name)}
    for name, value in sent.items():
        if not _VALUE.fullmatch(value):
            raise InvalidRequest(f"{name}: at most 1000 printable ASCII characters are needed, not {value[:60]!r}")
    if not _QUERY.fullmatch(query):
        raise InvalidRequest("query: ASCII characters are needed, others percent-encoded")
    parts = (part for part in query.split("&") if part and not part.lower().startswith(_AZURES))
    return PassedCall(path, "&".join(parts), sent, body, length, deployment)


def read_passed_options(headers: Mapping[str, str]) -> RequestOptions:
    """What the headers ask of the router. Raises InvalidRequest.

    The SDKs' own timeout is that of each read, and a body may take longer to send: it bounds nothing here.
    """
    options = read_options(headers)
    if "x-router-timeout" not in headers:
        options.pop("timeout", None)
    return options
