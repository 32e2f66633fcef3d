"""The lane of LiteLLM's own example configurations: each is imported, and every value of it is accounted for.

They come out of LiteLLM's wheel, which pip downloads; none is kept here. A file is an example when it has a
`model_list`. The lane fails when a file that has a deployment which we can reach is not imported, when a value is
passed over in silence, or when `--strict` does not tell a file that loses something from one that does not.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from smart_model_router.cli.importing import convert
from smart_model_router.cli.importing.import_report import leaves
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.yaml_document import parse

LEAST = 12
"""Examples that have to be imported."""


class EveryVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, key: str, default: object = None) -> str:
        """Return the same for all."""
        del key, default
        return "http://variable"


def examples(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Download the wheel into `folder` and yield its configurations by name."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "litellm"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        for name in sorted(wheel.namelist()):
            if name.endswith((".yaml", ".yml")) and b"model_list" in (raw := wheel.read(name)):
                yield name, raw


def faults(folder: Path, name: str, raw: bytes) -> tuple[str, list[str]]:
    """Say what became of an example, and what is wrong about that."""
    data: Any = yaml.safe_load(raw)
    try:
        imported = convert(parse(raw, name))
    except ConfigurationError as error:
        return f"not imported: {error.message}", []
    told = {entry.path for entry in imported.entries}
    silent = [path for path in leaves(data) if path not in told]
    left = [entry for entry in imported.entries if entry.verdict == "left out"]
    unexplained = [entry.key for entry in left if "; " not in entry.note]
    source, written = folder / "config.yaml", folder / "ours.yaml"
    source.write_bytes(raw)
    written.unlink(missing_ok=True)
    smr = Path(sys.executable).with_name("smr")
    command = [str(smr), "import", "litellm", str(source), "--strict", "-o", str(written)]
    done = subprocess.run(command, capture_output=True, check=False)
    wrong = [f"passed over: {path}" for path in silent] + [f"no reason: {key}" for key in unexplained]
    if done.returncode != (1 if left else 0):
        wrong.append(f"--strict exits with {done.returncode}")
    if not left:
        settings = data.get("router_settings") or {}
        theirs = {entry["model_name"] for entry in data["model_list"]} | set(settings.get("model_group_alias") or {})
        ours = set(RouterConfig.load(written, environ=EveryVariable()).names)
        wrong += [f"names differ: {sorted(theirs ^ ours)}"] * (theirs != ours)
    unknown = sum("does not know it" in entry.note for entry in left)
    return (
        f"{len(imported.config['models'])} models, {len(told)} values, {len(left)} left out ({unknown} unknown)",
        wrong,
    )


def main() -> int:
    """Import every example; the exit code."""
    taken = failed = 0
    with TemporaryDirectory() as folder:
        for name, raw in examples(Path(folder)):
            told, wrong = faults(Path(folder), name, raw)
            taken += not told.startswith("not")
            failed += bool(wrong)
            print(f"{name.removeprefix('litellm/proxy/')}: {told}", *wrong, sep="\n  ")
    print(f"{taken} examples imported ({LEAST} needed), {failed} with something wrong")
    return 0 if taken >= LEAST and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main())
