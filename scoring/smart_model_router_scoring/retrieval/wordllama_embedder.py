"""The embedder of the extra `embed`: wordllama's static word vectors, read from its wheel, without network."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import logging
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE = "wordllama"
MODEL = "l2_supercat_256"
FILES: Mapping[str, str] = MappingProxyType(
    {
        "weights/l2_supercat_256.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        "tokenizers/l2_supercat_tokenizer_config.json": (
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
        ),
    }
)
"""The files of the model in the package, with their SHA-256."""
MOST_CHARACTERS = 8_000
"""Of one text; the first ones. Chunks are shorter, and memory grows with the longest text of a batch."""
_BATCH = 16
"""Texts in one call of the model: it pads all of them to the longest one, and more are slower."""


class EmbedderUnavailable(OSError):
    """The model cannot be loaded: the package is missing, or its files are not those that were measured."""


def wordllama_is_installed() -> bool:
    """True when the package is there. It is not imported."""
    return importlib.util.find_spec(PACKAGE) is not None


class WordLlamaEmbedder:
    """256 dimensions, the mean of the vectors of a text's word pieces; 4 microseconds a word, English above all.

    A synonym is near and word order is nothing. The model is loaded by the first text, in a thread, once per process;
    its files are checked by hash before. Raises EmbedderUnavailable when it cannot be.
    """

    @property
    def name(self) -> str:
        """The model, and the beginning of the hash of its weights."""
        return f"{PACKAGE}/{MODEL}/{next(iter(FILES.values()))[:12]}"

    async def load(self) -> None:
        """Load the model unless it is loaded, outside the deadline of a first question. Raises EmbedderUnavailable."""
        if not _loaded.cache_info().currsize:
            await asyncio.to_thread(_model)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, of its first 8,000 characters; of a text without any, zeros."""
        return await asyncio.to_thread(_embed, [text[:MOST_CHARACTERS] for text in texts])


def _embed(texts: list[str]) -> list[list[float]]:
    found: list[list[float]] = _model().embed(texts, batch_size=_BATCH).tolist()
    return found


class _Model(Protocol):
    def embed(self, texts: list[str], *, batch_size: int) -> NDArray[np.float32]: ...


_LOADING = threading.Lock()


def _model() -> _Model:
    with _LOADING:  # two first questions load it once
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> _Model:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(2, "not installed: `pip install 'smart-model-router[embed]'`", PACKAGE)
    folder = Path(spec.origin).parent
    for name, digest in FILES.items():
        _check(folder / name, digest)
    root = logging.getLogger()
    silent = logging.NullHandler()
    root.addHandler(silent)  # the package calls `logging.basicConfig`, which then leaves the application's log alone
    try:
        from wordllama import WordLlama  # type: ignore[import-untyped] # noqa: PLC0415 - it has no types; an extra
    except ImportError as error:  # a package that it needs is missing
        raise EmbedderUnavailable(2, f"{error}; {_WAY_OUT}", PACKAGE) from error
    finally:
        root.removeHandler(silent)
    return cast("_Model", WordLlama.load(cache_dir=folder, disable_download=True))


_WAY_OUT = "install the extra `embed` again, or search without it (`search.embedder: none`)"


def _check(file: Path, digest: str) -> None:
    try:
        found = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise EmbedderUnavailable(error.errno, f"{error.strerror}; {_WAY_OUT}", str(file)) from None
    if found != digest:
        version = importlib.metadata.version(PACKAGE)
        wrong = f"its SHA-256 is {found} in {PACKAGE} {version}, not {digest}; {_WAY_OUT}"
        raise EmbedderUnavailable(22, wrong, str(file))
