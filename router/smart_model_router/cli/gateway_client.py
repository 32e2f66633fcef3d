"""A running gateway from the command line: its address, the key for it, and `smr targets`."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, print_json, print_line, print_table
from smart_model_router.cli.statistics import instant
from smart_model_router.config import ModelConfig, ProviderConfig, RouterConfig, Secret, TargetConfig, TierConfig
from smart_model_router.config.files import default_file
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.domain.errors import ConfigurationError, RouterUnavailable
from smart_model_router.domain.shared_state import Isolation

KEY_VARIABLE = "SMART_ROUTER_GATEWAY_KEY"
"""Goes before the keys of the configuration. No option: everyone on a machine can read command lines."""
_SECONDS = 10.0
_PROVIDER = "gateway"


def base_url(url: str | None, config: RouterConfig | None) -> str:
    """`url` as it was given, else the address of the configuration's own gateway; without /v1."""
    if url is not None or config is None:
        return (url or "").rstrip("/").removesuffix("/v1")
    host = config.gateway.host.strip("[]")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - where a wildcard can be reached
    return f"http://{f'[{host}]' if ':' in host else host}:{config.gateway.port}"


def gateway_key(config: RouterConfig | None, address: str, *, admin: bool) -> str | None:
    """The environment's key, else one of the configuration's, but that for its own gateway's `address` alone.

    An `admin`'s key comes first for commands that operate, and last for those that only ask.
    """
    given = os.environ.get(KEY_VARIABLE)
    if given or config is None or _origin(address) != _origin(base_url(None, config)):
        return given
    keys = sorted(config.gateway.keys.values(), key=lambda key: key.admin is not admin)
    return next((key.key.reveal() for key in keys if key.key is not None), None)


def _origin(address: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; every name of this machine's loopback is one. None for what is no address."""
    try:
        url = urlsplit(address)
        host = url.hostname or ""
        return url.scheme, "localhost" if _is_loopback(host) else host, url.port
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def asked(
    address: str, key: str | None, path: str, *, body: dict[str, str] | None = None, about: str
) -> dict[str, Any]:
    """Return the gateway's answer at `path`; with a `body` it is a POST. Raises ConfigurationError for a refusal.

    Raises RouterUnavailable when no gateway answers.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    try:
        # trust_env: a proxy in the environment is for the providers, not for this machine.
        with httpx.Client(base_url=address, headers=headers, timeout=_SECONDS, trust_env=False) as client:
            reply = client.get(path) if body is None else client.post(path, json=body)
            told = reply.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = str(error) or type(error).__name__
        raise RouterUnavailable(f"no gateway answers at {address} ({why}): smr serve runs one") from None
    if reply.status_code != httpx.codes.OK or not isinstance(told, dict):
        hint = f"; ${KEY_VARIABLE} is for its key" if reply.status_code == httpx.codes.UNAUTHORIZED else ""
        raise ConfigurationError(f"gateway {address}", about, _reason(told, reply.status_code) + hint)
    return told


def through_gateway(url: str, *, config: Path | None, model: str | None, tier: str | None) -> RouterConfig:
    """A configuration whose one target is a public name of the gateway; without a `model` the first it offers.

    It asks once: retries and fallbacks are the gateway's affair, which has longer for them than a provider.
    """
    own = configured(config).config if config is not None or default_file(os.environ) is not None else None
    address = base_url(url, own)
    key = gateway_key(own, address, admin=False)
    name = model or _first_model(address, key)
    provider = ProviderConfig(
        kind="openai_compatible",
        base_url=f"{address}/v1",
        api_key=() if key is None else (Secret(key),),
        headers={} if tier is None else {"x-router-tier": Secret(tier)},
    )
    target = TargetConfig(target=f"{_PROVIDER}/{name}", reasoning=True)
    known = ModelConfig(name=name, tiers=(TierConfig(targets=(target,)),), last_resort=())
    routing = RoutingConfig(attempts=1, attempts_per_tier=1, attempts_per_target=1)
    return RouterConfig(version=1, providers={_PROVIDER: provider}, models={name: known}, routing=routing)


def _first_model(address: str, key: str | None) -> str:
    listed = asked(address, key, "/v1/models", about="models").get("data")
    name = listed[0].get("id") if isinstance(listed, list) and listed and isinstance(listed[0], dict) else None
    if not isinstance(name, str):
        raise ConfigurationError(f"gateway {address}", "models", "a gateway that offers a model is needed")
    return name


def _reason(told: object, status: int) -> str:
    error = told.get("error") if isinstance(told, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return f"HTTP {status}" if message is None else f"{message} (HTTP {status})"


_HEADINGS = ("target", "state", "now", "because", "for", "in flight", "success")


def run_targets(action: str | None, name: str, *, why: str, url: str | None, config: Path | None, as_json: bool) -> int:
    """Print every target, or do `action` to those that `name` stands for and print them; the exit code.

    `why` is the operator's reason. A word that does not reach every process of the host is told on stderr.

    Raises ConfigurationError, and RouterUnavailable when no gateway answers.
    """
    found = None if url is not None and os.environ.get(KEY_VARIABLE) else configured(config).config
    address = base_url(url, found)
    told = _asked(address, gateway_key(found, address, admin=True), action, name, why)
    if as_json:
        print_json(told)
        return ExitCode.OK
    print_table(_HEADINGS, _rows(told["targets"]), sys.stdout)
    if told.get("scope") == "process":
        print_line(f"smr: only the process that answered obeys: {told.get('note')}")
    return ExitCode.OK


def _asked(address: str, key: str | None, action: str | None, name: str, why: str) -> dict[str, Any]:
    """Return the gateway's answer. Raises ConfigurationError for a refusal."""
    about = name or "targets"
    if action is None:
        told = asked(address, key, "/api/targets", about=about)
    else:
        told = asked(
            address, key, f"/api/targets/{action}", body={"name": name, "by": _user(), "why": why}, about=about
        )
    if "targets" not in told:
        raise ConfigurationError(f"gateway {address}", about, "the address of a gateway is needed")
    return told


def _user() -> str:
    """The name under which the system knows the person at the terminal, "" where it knows none."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def _because(target: Mapping[str, Any]) -> str:
    """The failure behind a refusal, or the operator's word."""
    word = target.get("isolated")
    return (target["because"] or "") if word is None else f"{Isolation(**word).told}, {instant(word['since'])}"


def _rows(targets: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for target in targets:
        after = target["retry_after"]
        yield (
            target["id"],
            target["state"],
            target["refusal"] or "ready",
            _because(target),
            "" if after is None else f"{after:.0f} s",
            f"{target['in_flight']} of {target['slots']}",
            "-" if target["success_rate"] is None else f"{target['success_rate']:.0%}",
        )
