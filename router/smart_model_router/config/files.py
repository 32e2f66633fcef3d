"""The places of the configuration file, and its faults with file and line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.config import retired
from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from smart_model_router.domain.yaml_document import Document

T = TypeVar("T")
VARIABLE = "SMART_ROUTER_CONFIG"
FILE_NAME = "smart-router.yaml"
_FOLDER = "smart-model-router"


def default_file(environ: Mapping[str, str]) -> Path | None:
    """The file used when none is named: $SMART_ROUTER_CONFIG, ./smart-router.yaml, the user's; None without one.

    The path in $SMART_ROUTER_CONFIG is returned even when no such file exists: it was named on purpose.
    """
    if named := environ.get(VARIABLE):
        return Path(named)
    candidates = [Path(FILE_NAME)]
    if (folder := _user_folder(environ)) is not None:
        candidates.append(folder / _FOLDER / FILE_NAME)
    return next((path for path in candidates if _is_file(path)), None)


def read_file(
    section: type[T],
    path: str | Path | None,
    environ: Mapping[str, str],
    place: Callable[[ConfigurationError, Document, str], ConfigurationError] | None = None,
) -> T:
    """Read a section from a YAML file, or from that in the default places. Raises ConfigurationError.

    `place` says where in the file a fault stands, None as `placed` does.
    """
    from smart_model_router.config.parsing import read_mapping  # noqa: PLC0415 - brings pydantic

    found = default_file(environ) if path is None else path
    if found is None:
        wanted = f"a file named by ${VARIABLE}, ./{FILE_NAME}, or one in the user's configuration folder is needed"
        raise ConfigurationError("configuration", None, wanted)
    if not isinstance(found, (str, Path)):
        raise ConfigurationError("configuration", type(found).__name__, "the path of a file is needed")
    document = document_of(found)
    try:
        config, gone = read_mapping(section, document.data, environ)
    except ConfigurationError as error:
        first, *others = ((place or placed)(fault, document, str(found)) for fault in (error, *error.others))
        raise first.with_others(others) from None
    retired.warn(gone, document, str(found), stacklevel=4)
    return config


def document_of(path: str | Path) -> Document:
    """The file as plain data with line numbers, nothing in it followed or checked. Raises ConfigurationError."""
    from smart_model_router.domain.yaml_document import parse  # noqa: PLC0415 - brings yaml

    return parse(_content(Path(path), str(path)), str(path))


def placed(fault: ConfigurationError, document: Document, name: str) -> ConfigurationError:
    """The fault with the line of the file called `name` on which it stands."""
    line = document.line_of(fault.key)
    place = f"{name}:{line}" if line else name
    return ConfigurationError(fault.key, fault.value, f"{fault.expected} ({place})")


def placed_in_columns(fault: ConfigurationError, document: Document, name: str) -> ConfigurationError:
    """The fault with the line and the column at which it stands."""
    found = document.place_of_key(fault.key)
    place = f"{name}:{found[0]}:{found[1]}" if found else name
    return ConfigurationError(fault.key, fault.value, f"{fault.expected} ({place})")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder on the way that we may not enter
        return False


def _content(path: Path, name: str) -> bytes:
    try:
        if path.is_dir():
            raise ConfigurationError("configuration", name, "a file, not a directory, is needed")
        if not path.exists():
            raise ConfigurationError("configuration", name, "an existing file is needed (smr init writes a first one)")
        if not path.is_file():  # reading a pipe could block for ever
            raise ConfigurationError("configuration", name, "a regular file is needed")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise ConfigurationError("configuration", name, f"a readable file is needed ({reason})") from None


def _user_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's configuration folder as the platform has it; None when there is no home."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if sys.platform == "win32":
        return Path(environ["APPDATA"]) if environ.get("APPDATA") else None
    if sys.platform == "darwin":
        return Path(home) / "Library" / "Application Support" if home else None
    if named := environ.get("XDG_CONFIG_HOME"):
        return Path(named)
    return Path(home) / ".config" if home else None
