"""`smr keys new`: a virtual key for a client of the gateway, and the lines that let it in."""

from __future__ import annotations

import json
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, OptionFault, print_answer, print_json, print_line
from smart_model_router.config.rules import NAME, NAME_NEEDED
from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from smart_model_router.cli.commands import NewKey

PREFIX = "sk-smr-"
_BYTES = 32


def run(asked: NewKey) -> int:
    """Print the key, once, and its entry for the configuration, which holds the digest alone. Raises OptionFault."""
    if not NAME.fullmatch(asked.name):
        raise OptionFault([ConfigurationError("NAME", asked.name, NAME_NEEDED)])
    key = PREFIX + secrets.token_urlsafe(_BYTES)
    limits = {"rpm": asked.rpm, "tpm": asked.tpm, "usd_per_day": asked.usd_per_day}
    entry = {"sha256": sha256(key.encode()).hexdigest()} | {k: v for k, v in limits.items() if v is not None}
    if asked.as_json:
        print_json({"name": asked.name, "key": key, "config": {"gateway": {"keys": {asked.name: entry}}}})
        return ExitCode.OK
    print_answer(f"{key}\n")
    print_line("shown this once: keep it where the client finds it. For smart-router.yaml:")
    fields = ", ".join(f"{name}: {json.dumps(value)}" for name, value in entry.items())
    for line in ("gateway:", "  keys:", f"    {json.dumps(asked.name)}: {{{fields}}}"):
        print_line(line)
    return ExitCode.OK
