"""`smr targets`: the state of a running gateway's targets; enable or isolate one of them."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from smart_model_router.cli.configured import configured
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.gateway_access import KEY_VARIABLE, asked, base_url, gateway_key
from smart_model_router.cli.output import print_json, print_line, print_table
from smart_model_router.cli.statistics import instant
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import Isolation

_HEADINGS = ("target", "state", "now", "because", "for", "in flight", "success")


def run(action: str | None, name: str, *, why: str, url: str | None, config: Path | None, as_json: bool) -> int:
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
            f"{target['success_rate']:.0%}",
        )
