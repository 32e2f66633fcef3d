"""`smr config check`, `show` and `schema`: the faults of a configuration, its values in force, and its JSON Schema."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from smart_model_router.cli.configured import check_router, configured
from smart_model_router.cli.doctor import linted
from smart_model_router.cli.doctor_finding import DoctorFinding
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table
from smart_model_router.config import ConfigurationWarning, RouterConfig
from smart_model_router.config.conversion import references
from smart_model_router.config.files import default_file, document_of, placed
from smart_model_router.config.origins import DEFAULT, Value, plain, values_in_force
from smart_model_router.config.provider_loading import make_provider
from smart_model_router.config.schema import json_schema
from smart_model_router.config.secret import MASK, masked
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import spelled
from smart_model_router_providers.catalog import KINDS, is_kind, kind_of

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Check, Schema, Show


def run_check(asked: Check) -> int:
    """Print every fault and every warning; 3 when there is a fault."""
    faults: list[ConfigurationError] = []
    findings: list[DoctorFinding] = []
    file = asked.config or default_file(os.environ)
    source = str(file or "the environment")
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", ConfigurationWarning)
            found = configured(asked.config)
        findings = [
            DoctorFinding("warning", w.key, w.text)
            for one in told
            if isinstance(w := one.message, ConfigurationWarning)
        ]
        source, faults = found.source, list(_unmakeable(found.config))
        if not faults:
            check_router(found.config)
            findings += linted(found.config)
    except ConfigurationError as error:
        faults = [error, *error.others]
    if faults and file is not None and file.is_file():
        faults = _in_order(faults, file)
    if asked.as_json:
        print_json(_as_dict(source, faults, findings))
    else:
        rows = [("problem", fault.key, f"{fault.shown} - {fault.expected}") for fault in faults]
        rows += [(finding.level, finding.topic, finding.text) for finding in findings]
        if rows:
            print_table((), rows, sys.stdout)
        notes = sum(finding.level == "note" for finding in findings)
        warned = len(findings) - notes
        print_line(
            f"{source}: {_counted(len(faults), 'problem')}, {_counted(warned, 'warning')}, {_counted(notes, 'note')}"
        )
    return ExitCode.CONFIGURATION if faults else ExitCode.OK


def _unmakeable(config: RouterConfig) -> Iterator[ConfigurationError]:
    """Yield the faults that making the providers shows: an unknown kind, a missing address."""
    for name, provider in config.providers.items():
        if not is_kind(provider.kind):
            yield _unknown_kind(name, provider.kind)
            continue
        try:
            make_provider(config, name)
        except ConfigurationError as fault:
            yield fault


def _unknown_kind(name: str, kind: str) -> ConfigurationError:
    return ConfigurationError(spelled(("providers", name, "kind")), masked(kind), did_you_mean(kind, KINDS))


def _in_order(faults: list[ConfigurationError], file: Path) -> list[ConfigurationError]:
    """The faults as they stand in the file, each with its line; and kinds that reading alone does not know."""
    try:
        document = document_of(file)
    except ConfigurationError:  # it is no YAML, and that is the one fault
        return faults
    written = document.data.get("providers") if isinstance(document.data, dict) else None
    for name, provider in written.items() if isinstance(written, dict) else ():
        kind = provider.get("kind") if isinstance(provider, dict) else None
        unknown = isinstance(kind, str) and not is_kind(kind) and not references(kind)
        if isinstance(kind, str) and unknown and spelled(("providers", name, "kind")) not in {f.key for f in faults}:
            faults.append(_unknown_kind(name, kind))
    placed_faults = [fault if str(file) in fault.expected else placed(fault, document, str(file)) for fault in faults]
    return sorted(placed_faults, key=lambda fault: document.line_of(fault.key) or 0)


def _as_dict(source: str, faults: list[ConfigurationError], findings: list[DoctorFinding]) -> dict[str, Any]:
    return {
        "ok": not faults,
        "source": source,
        "problems": [
            {"key": fault.key, "value": _as_written(fault.value), "expected": fault.expected} for fault in faults
        ],
        "warnings": _listed(findings, "warning"),
        "notes": _listed(findings, "note"),
    }


def _listed(findings: list[DoctorFinding], level: str) -> list[dict[str, str]]:
    return [{"topic": finding.topic, "text": finding.text} for finding in findings if finding.level == level]


def _as_written(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


def run_show(asked: Show) -> int:
    """Print the whole tree as YAML, or with `origin` a line for each value. Raises ConfigurationError."""
    found = configured(asked.config)
    if not asked.origin:
        if asked.as_json:
            print_json({"source": found.source, "config": plain(found.config)})
        else:
            print_answer(yaml.safe_dump(plain(found.config), sort_keys=False, allow_unicode=True))
        return ExitCode.OK
    values = _values(found.config, asked.config)
    if asked.as_json:
        listed = [{"key": spelled(value.path), "value": value.value, "origin": value.origin} for value in values]
        print_json({"source": found.source, "values": listed})
        return ExitCode.OK
    rows = [(spelled(value.path), _shown(value.value), value.origin) for value in values]
    print_table(("key", "value", "from"), rows, sys.stdout)
    print_line(f"configuration: {found.source}")
    return ExitCode.OK


def _values(config: RouterConfig, path: Path | None) -> list[Value]:
    file = path or default_file(os.environ)
    document = None if file is None else document_of(file)
    return [_from_variable(value, config) for value in values_in_force(config, document, str(file))]


def _from_variable(value: Value, config: RouterConfig) -> Value:
    """A key that is not configured is the first of its kind's variables that is set."""
    match value.path:
        case ("providers", str(name), "api_key", *_) if value.origin == DEFAULT:
            variables = kind_of(config.providers[name].kind).key_variables
            found = next((variable for variable in variables if os.environ.get(variable)), None)
            return value if found is None else Value(value.path, MASK, f"environment: ${found}")
        case _:
            return value


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def run_schema(asked: Schema) -> int:
    """Print the schema; the exit code."""
    if asked.as_json:
        print_json(json_schema())
    else:
        print_answer(json.dumps(json_schema(), indent=2) + "\n")
    return ExitCode.OK


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
