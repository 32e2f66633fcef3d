"""The command `smr`. Importing this is cheap: each command imports what it needs when it runs."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `smr` with these arguments, None: those of this process. Every end is a SystemExit with its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with it closed: `smr ... >&-`
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
            setattr(sys, name, nowhere)
    logging.getLogger("smart_model_router").addHandler(logging.NullHandler())  # commands say it themselves; see serve
    try:
        from smart_model_router.cli.app import app  # noqa: PLC0415 - typer comes with the extra `cli`
        from smart_model_router.cli.usage import run  # noqa: PLC0415 - as above
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit("smr: the command line is an extra: pip install 'smart-model-router[cli]'")
    sys.exit(run(app, arguments))
