"""The texts of virtual keys: which are none, which a client cannot send, and which header counts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.config import GatewayKeyConfig, RouterConfig, Secret
from smart_model_router.config.rules import short_keys
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.asgi_app import log_findings
from smart_model_router.gateway.client_keys import KeyRing
from smart_model_router.http_api import ProblemError

MINIMAL = {
    "version": 1,
    "providers": {"s": {"kind": "scripted"}},
    "models": {"smart": {"tiers": [{"targets": ["s/m"]}], "last_resort": []}},
}
ACCENTED = "clé-de-la-porte"
NOTHING = ["", " ", "Bearer", "Bearer ", "Bearer  ", "bearer \t", "Basic Og=="]
HOSTS = "127.0.0.1.nip.io 2130706433 127.0.0.1:abc evil.example@127.0.0.1 127.0.0.1@evil.example 127.0.0.1/evil \
127.0.0.1,evil [::1].evil [::1 0x7f.1 localhost. 127.1".split()


@pytest.mark.parametrize(
    ("key", "told"),
    [
        *(({"key": blank}, "neither empty nor blank") for blank in ("", " ", "  \t", " k", "k\n", ACCENTED)),
        *(
            ({"sha256": hashlib.sha256(text).hexdigest().upper()}, "the digest of a key is needed")
            for text in (b"", b" ", b"\n")
        ),
    ],
)
def test_a_key_that_no_client_can_send_is_refused(key: Mapping[str, Any], told: str) -> None:
    """At construction: no text, blanks, the digest of no text, and what SDKs cannot put into a header."""
    with pytest.raises(ConfigurationError) as refused:
        RouterConfig.from_mapping({**MINIMAL, "gateway": {"keys": {"team": key}}})
    assert told in refused.value.message


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "api-key"])
@pytest.mark.parametrize("text", [b"", b" "])
def test_no_text_is_no_key_whatever_is_configured(name: str, text: bytes) -> None:
    """Not even where its digest got past the configuration."""
    ring = KeyRing({"team": GatewayKeyConfig(sha256=hashlib.sha256(text).hexdigest())})
    for shown in NOTHING if name == "authorization" else ["", " ", "\t"]:
        with pytest.raises(ProblemError) as refused:
            ring.api_client({name: shown})
        assert refused.value.problem.kind.status == 401


def test_a_digest_is_of_the_bytes_that_a_client_sends() -> None:
    """A key beyond ASCII, which some clients send as UTF-8, is known by the digest of its UTF-8."""
    ring = KeyRing({"team": GatewayKeyConfig(sha256=hashlib.sha256(ACCENTED.encode()).hexdigest())})
    assert ring.api_client({"x-api-key": ACCENTED.encode().decode("latin-1")}).name == "team"


def test_authorization_goes_before_the_other_headers() -> None:
    """Claude Code sends both where both are set: the token is for the gateway, the key is Anthropic's."""
    ring = KeyRing({"team": GatewayKeyConfig(key=Secret("k")), "other": GatewayKeyConfig(key=Secret("o"))})
    assert ring.api_client({"authorization": "Bearer k", "x-api-key": "o"}).name == "team"
    assert ring.api_client({"authorization": "Bearer ", "x-api-key": "o"}).name == "other"
    with pytest.raises(ProblemError):
        ring.api_client({"authorization": "Bearer wrong", "x-api-key": "o"})


def test_a_short_key_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """By the name of its place, without the key; a long one and a digest are not."""
    keys = {"team": {"key": "short-key"}, "long": {"key": "k" * 16}, "hashed": {"sha256": "0" * 64}}
    config = RouterConfig.from_mapping({**MINIMAL, "gateway": {"keys": keys}})
    assert [key for key, _ in short_keys(config)] == ["gateway.keys.team.key"]
    log_findings(config)
    assert "gateway.keys.team.key: the key has 9 characters" in caplog.text
    assert "short-key" not in caplog.text


@pytest.mark.parametrize("host", [" ", *HOSTS])
def test_what_only_looks_like_an_address_of_this_machine_is_none(host: str) -> None:
    """A page from elsewhere whose name was made to mean this machine may ask nothing, however it is spelled."""
    with pytest.raises(ProblemError) as refused:
        KeyRing({}).api_client({"host": host})
    assert refused.value.problem.kind.status == 403
