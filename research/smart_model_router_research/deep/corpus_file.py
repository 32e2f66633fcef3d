"""A corpus: the publisher of its documents, the trust in them and their dates, as `corpus.yaml` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path as FilePath
from urllib.parse import quote, urlsplit

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router.domain.yaml_document import Document, parse
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.days import WrittenDay, written_day
from smart_model_router_research.deep.domains import host_of
from smart_model_router_research.deep.tiers import SourcePolicy

CORPUS_FILE = "corpus.yaml"
_MOST_BYTES = 262_144
_EACH, _TOGETHER = "document", "publisher"
_KEYS = ("name", "publisher", "tier", "primary", "independence", "licence", "base_url", "as_of", "dates")
_REQUIRED = ("name", "publisher", "tier")


class CorpusError(ConfigurationError):
    """A corpus that cannot be used as it is declared: `key` is file, line, column and key; `others` are the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A folder of documents and what is known of all of them.

    `alone_suffices` (`independence: document`) says that each document vouches for itself, without a second source.
    `dates` are pairs of a pattern of paths (`news/*`) and the day that matching documents are of; the first one counts,
    and `as_of` is the day of all others, None where unknown. Addresses are `base_url` and the path.
    """

    name: str
    publisher: str
    tier: SourceTier
    primary: bool = False
    alone_suffices: bool = False
    licence: str = ""
    base_url: str = ""
    as_of: WrittenDay | None = None
    dates: tuple[tuple[str, WrittenDay], ...] = ()

    def day_of(self, path: str) -> WrittenDay | None:
        """Return the day that the corpus gives a document; None where it gives none."""
        return next((day for pattern, day in self.dates if fnmatchcase(path, pattern)), self.as_of)

    def url_of(self, path: str) -> str:
        """Return the address of a document; "" without a `base_url`."""
        return f"{self.base_url.rstrip('/')}/{quote(path, errors='replace')}" if self.base_url else ""


def undeclared_corpus(name: str) -> Corpus:
    """Return what a folder without `corpus.yaml` is: its user named it, and so trusts each of its documents."""
    return Corpus(name=name, publisher=name, tier=SourceTier.A, alone_suffices=True)


def load_corpus(folder: str | FilePath, policy: SourcePolicy | None = None) -> Corpus:
    """Read `corpus.yaml` of a folder. Without the file the corpus is that of `undeclared_corpus`.

    Raises CorpusError for a folder that is none, a file that cannot be read, and as `parse_corpus` does.
    """
    path = FilePath(folder)
    file = path / CORPUS_FILE
    try:
        if not path.is_dir():
            raise CorpusError(str(folder), "no folder", "an existing folder is needed")
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return undeclared_corpus(path.resolve().name or str(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise CorpusError(str(file), reason, "a readable file is needed") from None
    return parse_corpus(content, str(file), policy)


def parse_corpus(content: bytes, file: str = CORPUS_FILE, policy: SourcePolicy | None = None) -> Corpus:
    """Read a declaration of a corpus. `file` is its name, for errors.

    Raises CorpusError, with the other faults beside the first: for what is no YAML, unknown and missing keys, values of
    another type, `independence: document` of a corpus that is not primary, and a tier above C at a blocked domain.
    """
    try:
        document = parse(content, file, typed=True)
    except ConfigurationError as error:
        raise _as_corpus_error(error).with_others(map(_as_corpus_error, error.others)) from None
    reader = _CorpusReader(document, file)
    corpus = reader.corpus(policy or SourcePolicy())
    if corpus is None or reader.faults:
        raise reader.faults[0].with_others(reader.faults[1:])
    return corpus


def _as_corpus_error(error: ConfigurationError) -> CorpusError:
    return CorpusError(error.key, error.value, error.expected)


class _CorpusReader:
    """One reading of a declaration; all its faults."""

    def __init__(self, document: Document, file: str) -> None:
        self.faults: list[CorpusError] = []
        self._document = document
        self._file = file
        self._told: Mapping[str, object] = {}

    def corpus(self, policy: SourcePolicy) -> Corpus | None:
        """Return the corpus; it counts only without faults."""
        told = self._document.data
        if not isinstance(told, dict):
            self._fault((), told, "keys and values are needed, such as `name: my-corpus`")
            return None
        self._told = told
        for key in told:
            if key not in _KEYS:
                self._fault((key,), told[key], f"the key is unknown; {did_you_mean(key, _KEYS)}")
        for key in _REQUIRED:
            if told.get(key) is None:
                self._fault((key,), None, "a value is needed")
        corpus = Corpus(
            name=self._text("name"),
            publisher=self._text("publisher"),
            tier=SourceTier(self._choice("tier", tuple(SourceTier), SourceTier.B)),
            primary=self._truth("primary"),
            alone_suffices=self._choice("independence", (_EACH, _TOGETHER), _TOGETHER) == _EACH,
            licence=self._text("licence"),
            base_url=self._text("base_url"),
            as_of=self._day(("as_of",), told.get("as_of")),
            dates=self._dates(),
        )
        if corpus.alone_suffices and not corpus.primary:
            self._fault(
                ("independence",), _EACH, "`primary: true` is needed beside it: copies do not vouch for themselves"
            )
        self._check_address(corpus, policy)
        return corpus

    def _check_address(self, corpus: Corpus, policy: SourcePolicy) -> None:
        if not corpus.base_url:
            return
        host = host_of(corpus.base_url)
        if urlsplit(corpus.base_url).scheme not in ("http", "https") if host else True:
            self._fault(("base_url",), corpus.base_url, "an address with http or https and a host is needed")
        elif (blocked := policy.blocks(host)) and corpus.tier is not SourceTier.C:
            self._fault(("tier",), corpus.tier.value, f"tier C is needed: the operator blocks {blocked}, of `base_url`")

    def _text(self, key: str) -> str:
        value = self._told.get(key)
        if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= 1_000:
            return value.strip()
        if value is not None:
            self._fault((key,), value, "one line of text is needed")
        return ""

    def _truth(self, key: str) -> bool:
        value = self._told.get(key)
        if not isinstance(value, bool | None):
            self._fault((key,), value, "true or false is needed")
        return value is True

    def _choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self._told.get(key)
        if value is None:
            return default
        if value not in choices:
            self._fault((key,), value, f"one of {', '.join(choices)} is needed")
            return default
        return str(value)

    def _dates(self) -> tuple[tuple[str, WrittenDay], ...]:
        told = self._told.get("dates")
        if not isinstance(told, dict | None):
            self._fault(("dates",), told, "patterns of paths with a date each are needed, such as `news/*: 2024-03`")
            return ()
        found = [(pattern, self._day(("dates", pattern), value)) for pattern, value in (told or {}).items()]
        return tuple((pattern, day) for pattern, day in found if day is not None)

    def _day(self, path: Path, value: object) -> WrittenDay | None:
        day = written_day(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
        if day is None and (value is not None or path != ("as_of",)):
            self._fault(path, value, "a day, a month or a year is needed, such as 2024-03-05, 2024-03 or 2024")
        return day

    def _fault(self, path: Path, value: object, expected: str) -> None:
        line, column = self._document.place_of(path)
        named = f" {'.'.join(map(str, path))}" if path else ""
        self.faults.append(CorpusError(f"{self._file}:{line}:{column}{named}", value, expected))
