"""Texts as logs and sinks may see them: likely secrets become `***`, captured content is cut, hashed or redacted.

Secrets are known by the prefixes of keys, and by their places in headers and URLs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import quote

from smart_model_router.domain.outcome import Failure

_SHORTEST = 4
"""Shorter secrets are words by chance."""
MASK = "***"
_LONGEST_LINE = 300
# Prefixes by which providers and clouds mark their keys. Most end in a mark: `skywork-o1` is a model, no key.
_KEY_LIKE = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|xai|csk|tgp|nvapi|xox[abp])[-_]|(?:hf|gh[oprsu]|github_pat)_|AKIA(?=[A-Z0-9])|AIza)[\w-]{8,}"
)
_IN_CONTEXT = (
    # A credential after its scheme, wherever a header was printed.
    re.compile(r"(?P<keep>\b(?i:bearer)\s+)[^\s\"',;]{4,}"),
    re.compile(r"(?P<keep>\b(?i:basic)\s+)(?=\S*[A-Z0-9=])[\w+/]{8,}={0,2}"),
    # name: value and name=value of what is secret by its name: headers, queries of URLs, JSON.
    re.compile(
        r"(?i)(?P<keep>(?<![a-z0-9])(?:authorization|(?:(?:api|auth|access)[-_]?)?(?:key|token)|secret|password)"
        r"(?:\\*[\"'])?\s*[=:]\s*(?:\\*[\"'])?(?:(?:bearer|basic)\s+)?)[^\s\"'&,;}]{4,}"
    ),
    # user:password@ of a URL.
    re.compile(r"(?P<keep>://)[^/\s@]+(?=@)"),
)
_QUERY = re.compile(r"(?P<start>\bhttps?://[^\s\"'<>?#]*\?)(?P<query>[^\s\"'<>#]+)")
_PLAIN_PARAMETERS = frozenset({"api-version", "version", "beta", "alt", "region", "project", "location", "deployment"})
"""Names in the query of a URL whose values are no secrets."""


def masked(text: str) -> str:
    """The text without anything that looks like a provider's key."""
    return _KEY_LIKE.sub(MASK, text)


def masked_urls(text: str) -> str:
    """`masked`, and without the user and the values in the query of any URL: tokens stand there under any name."""
    text = _IN_CONTEXT[-1].sub(rf"\g<keep>{MASK}", masked(text))
    return _QUERY.sub(lambda found: found["start"] + "&".join(map(_parameter, found["query"].split("&"))), text)


def _parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        return MASK
    return text if name.lower() in _PLAIN_PARAMETERS else f"{name}={MASK if value else ''}"


def redacted(text: str) -> str:
    """The text without keys, and without whatever stands where a header or a URL has a credential."""
    text = masked_urls(text)
    for pattern in _IN_CONTEXT:
        text = pattern.sub(rf"\g<keep>{MASK}", text)
    return text


def error_line(error: BaseException, secret: str) -> str:
    """The text of an error (its type where it has none) in one line of 300 characters at most, without `secret`."""
    text = " ".join(str(error).split()) or type(error).__name__
    return (text.replace(secret, MASK) if secret else text)[:_LONGEST_LINE]


class Scrubber:
    """Takes known secrets out, whatever they look like, as they are and as a URL or JSON spells them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {
            spelling
            for secret in secrets
            if len(secret) >= _SHORTEST
            for spelling in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])
        }
        # The longest first: one that begins with another would keep its rest.
        self._secrets = tuple(sorted(spelled, key=lambda one: (-len(one), one)))
        self._raw = tuple(secret.encode() for secret in self._secrets)

    def text(self, text: str) -> str:
        """The text without them, and without what looks like one."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return redacted(text)

    def failure(self, failure: Failure) -> Failure:
        """The failure without them, in the provider's own body as well."""
        raw = failure.raw
        for secret in self._raw:
            raw = raw.replace(secret, MASK.encode())
        message, code = self.text(failure.message), self.text(failure.code)
        if (message, code, raw) == (failure.message, failure.code, failure.raw):
            return failure
        return replace(failure, message=message, code=code, raw=raw)


Mode = Literal["hash", "redacted", "full"]
LIMIT = 32_768
"""Characters that are captured of a prompt, and of an answer."""
_MARGIN = 1024
"""Characters that are read beyond the limit and left out again: a secret cut in two would not be recognised."""
# Personal data in any language: addresses of e-mail, and numbers as long as a telephone's or a card's.
_PERSONAL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w.])\+?\d(?:[ ()/-]?\d){8,}(?![\w.])")


class ContentCapture:
    """Captures content as `mode` allows.

    `scrub` takes keys out of a text, in every mode. `until` is the instant (seconds since the epoch, of `wall`) at
    which the capture ends; None is never.
    """

    def __init__(
        self, mode: Mode, *, scrub: Callable[[str], str], wall: Callable[[], float], until: float | None = None
    ) -> None:
        self.mode: Mode = mode
        self._scrub = scrub
        self._wall = wall
        self._until = until
        self._makers: Mapping[Mode, Callable[[str], str]] = {
            "hash": self._hash,
            "redacted": lambda text: _PERSONAL.sub(MASK, self._full(text)),
            "full": self._full,
        }

    @property
    def over(self) -> bool:
        """True when the capture has ended."""
        return self._until is not None and self._wall() >= self._until

    def told(self, text: str) -> str:
        """The captured form of a text; "" for none."""
        return self._makers[self.mode](text) if text else ""

    def _hash(self, text: str) -> str:
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def _full(self, text: str) -> str:
        if len(text) <= LIMIT:
            return self._scrub(text)
        return self._scrub(text[: LIMIT + _MARGIN])[:-_MARGIN] + f"... ({len(text)} characters)"
