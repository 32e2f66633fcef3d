"""`smr init`: a commented configuration for the keys and the model servers that are found."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router.config.files import FILE_NAME
from smart_model_router.config.starter import servers_that_answer, starter_text
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.catalog import KINDS, found_in
from smart_model_router_providers.local import is_ready

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Init

_NOTHING = (
    "a key in the environment ({variables}), a model server on this machine (Ollama, LM Studio, vLLM, llama.cpp) or "
    "the embedded model (smr local install) is needed to begin with"
)


def run(asked: Init) -> int:
    """Write the file and say what is in it, and what comes next. Raises ConfigurationError; never replaces a file."""
    file = asked.file or Path(FILE_NAME)
    if file.exists() or file.is_symlink():
        raise ConfigurationError("smr init", str(file), _there(file))
    keys, servers, embedded = found_in(os.environ), servers_that_answer(), is_ready().ready
    if not (keys or servers or embedded):
        variables = ", ".join(kind.key_variables[0] for kind in list(KINDS.values())[:3])
        raise ConfigurationError("providers", None, _NOTHING.format(variables=f"{variables}, ..."))
    _write(file, starter_text(keys, servers, embedded=embedded))
    found = [f"{kind} (${variable})" for kind, variable in keys]
    found += [f"{one.server.label} ({one.server.base_url})" for one in servers]
    found += ["the embedded model"] if embedded else []
    if asked.as_json:
        print_json({"file": str(file), "found": found})
    else:
        print_answer(f"{file}\n")
    print_line(f"found: {', '.join(found)}")
    option = "" if asked.file is None else f" --config {shlex.quote(str(file))}"
    print_line(f'next: smr doctor --online{option}, then smr ask{option} "Hello"')
    return ExitCode.OK


def _there(file: Path) -> str:
    return f"{file} is left as it is (smr config check reads it); smr init OTHER.yaml writes another"


def _write(file: Path, text: str) -> None:
    """Write a new file, whole or not at all. Raises ConfigurationError where the directory takes none."""
    try:
        with file.open("x", encoding="utf-8") as new:
            try:
                new.write(text)
                new.flush()
            except OSError:
                file.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise ConfigurationError("smr init", str(file), _there(file)) from None
    except OSError as error:
        wanted = f"a file in a directory that can be written is needed ({error.strerror})"
        raise ConfigurationError("smr init", str(file), wanted) from None
