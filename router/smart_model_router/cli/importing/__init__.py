"""`smr import litellm`: another router's configuration as ours, and what could not be taken over, with the reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from smart_model_router.cli.importing.import_report import Entry
from smart_model_router.cli.importing.litellm import Imported, convert
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router.config import RouterConfig
from smart_model_router.config.files import document_of
from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from smart_model_router.cli.commands import ImportLitellm


def run(asked: ImportLitellm) -> int:
    """Write the configuration to `output`, else to stdout; print the report. Raises ConfigurationError.

    With `strict`, a value that is left out fails the command; the configuration is written all the same.
    """
    source, output = asked.source, asked.output
    imported = convert(document_of(source))
    RouterConfig.from_mapping(_checkable(imported.config), environ=_Anything())
    text = _written(imported, source)
    dropped = any(entry.verdict == "left out" for entry in imported.entries)
    code = ExitCode.FAILED if asked.strict and dropped else ExitCode.OK
    if output is not None:
        _write(output, text)
    if asked.as_json:
        print_json(
            {
                "source": str(source),
                "written": None if output is None else str(output),
                "config": imported.config,
                "entries": [
                    {"key": e.key, "line": e.line, "verdict": e.verdict, "to": e.to, "note": e.note}
                    for e in imported.entries
                ],
            }
        )
        return code
    if output is None:
        print_answer(text)
    for entry in imported.entries:
        if entry.verdict != "mapped":
            became = f" -> {entry.to}" if entry.to else ""
            print_line(f"{source}:{entry.line}: {entry.verdict}: {entry.key}{became}: {entry.note}")
    told = Counter(entry.verdict for entry in imported.entries)
    where = "" if output is None else f"; written to {output}, see smr config check -c {output}"
    print_line(", ".join(f"{count} values {verdict}" for verdict, count in told.items()) + where)
    return code


def _written(imported: Imported, source: Path) -> str:
    head = [f"Imported from {source.name}, a configuration of LiteLLM's proxy."]
    left = [entry for entry in imported.entries if entry.verdict == "left out"]
    head += ["Left out:"] * bool(left) + [f"  line {entry.line}, {entry.key}: {entry.note}" for entry in left]
    head.append("`last_resort: []` is as it was there: without it, the embedded model answers when all others fail.")
    comments = "".join(f"# {_one_line(line)}\n" for line in head)
    return comments + yaml.dump(imported.config, Dumper=_Whole, sort_keys=False, allow_unicode=True, width=120)


class _Whole(yaml.SafeDumper):
    """Writes a target anew wherever it is named: anchors are for people who put them there."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's own signature
        return True


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _write(path: Path, text: str) -> None:
    """Readable for its owner alone: keys may stand in it. Nothing is overwritten."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError("--output", str(path), "a file that does not exist yet is needed") from None
    except OSError as error:
        raise ConfigurationError("--output", str(path), f"a path to write to is needed ({error.strerror})") from None


def _checkable(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without URLs of servers that have a variable: only its value shows whether they are right."""
    store = {key: url for key, url in config.get("store", {}).items() if "${" not in url}
    return {**config, "store": store}


class _Anything(Mapping[str, str]):
    """An environment in which every variable is set: what is checked is the file, and not where it was made."""

    def __getitem__(self, name: str) -> str:
        return "http://variable"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


__all__ = ["Entry", "Imported", "convert", "run"]
