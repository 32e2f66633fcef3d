"""Corpora of a run: folders, single documents and index files become sources that can be searched."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from smart_model_router.flow.clock import WallClock
from smart_model_router_research.deep.corpus_file import (
    CORPUS_FILE,
    Corpus,
    CorpusError,
    load_corpus,
    undeclared_corpus,
)
from smart_model_router_research.deep.corpus_search import HITS, CorpusSearch
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.readers import ReadingContext
from smart_model_router_research.deep.tiers import SourcePolicy
from smart_model_router_scoring.retrieval import (
    INDEXED_ANYWAY,
    OLDER_FORMAT,
    IndexBusy,
    IndexNotReady,
    IndexReport,
    SearchIndex,
    index_folder,
)
from smart_model_router_scoring.retrieval.files import MOST_BYTES

READ = "Markdown, text, HTML and PDF files"
_MAGIC = b"SQLite format 3\0"
_TRIES = 30
"""Each waits some seconds for a process that is indexing the same folder."""
_SHOWN = 20
"""Lines about files of one corpus that were left out; the others are counted."""
_KINDS = 5


@dataclass(frozen=True, slots=True)
class OpenedCorpora:
    """Corpora that can be searched, in their order, and what was left out of them: a line each, with the reason."""

    searches: tuple[CorpusSearch | LostCorpus, ...]
    skipped: tuple[str, ...] = ()


class LostCorpus:
    """A corpus of a run that goes on, which cannot be opened any more: `error` says why, and each search raises it."""

    def __init__(self, error: CorpusError, place: str) -> None:
        self.error = error
        self.place = place

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Raise the error."""
        del text, most
        raise self.error

    async def topics(self) -> frozenset[str]:
        """Raise the error."""
        raise self.error


@dataclass(frozen=True, slots=True)
class _Opened:
    """A corpus and its index. `is_declared` says that it has a corpus.yaml, which names it."""

    path: Path
    index: Path
    corpus: Corpus
    is_declared: bool
    skipped: tuple[str, ...] = ()


async def open_corpora(
    paths: Iterable[str | Path],
    *,
    as_of: datetime,
    cache: Path,
    policy: SourcePolicy | None = None,
    wall: Callable[[], float] = WallClock.now,
    lost_too: bool = False,
) -> OpenedCorpora:
    """Open the corpora of these paths: folders of documents, single documents, or index files that `smr index` made.

    Folders and documents are indexed into a file each in the folder `cache`; later only what changed is read again.
    `as_of` is the day that ages are counted to. Raises CorpusError, with those of the other paths beside the first: for
    a path that is not there, what has no document that can be read, a corpus.yaml with faults, two corpora of one name,
    and an index that cannot be written. With `lost_too`, for a run that goes on, a corpus that cannot be opened is a
    LostCorpus in its place.
    """
    known, faults = policy or SourcePolicy(), list[CorpusError]()
    opened: dict[Path, _Opened | None] = dict.fromkeys(map(Path, paths))
    lost: dict[Path, CorpusError] = {}
    for path in opened:
        try:
            opened[path] = await _opened(path, cache, known, wall)
        except CorpusError as error:
            lost[path] = error
            faults += [error, *(fault for fault in error.others if isinstance(fault, CorpusError))]
    if lost_too:
        faults.clear()
    named = iter(_named_apart([each for each in opened.values() if each is not None], lost, faults))
    if faults:
        raise faults[0].with_others(faults[1:])
    context = ReadingContext(as_of=as_of, policy=known, backend="corpus")
    found = [
        LostCorpus(lost[path], place)
        if path in lost
        else CorpusSearch((each := next(named)).index, each.corpus, context, place)
        for path, place in ((path, str(path.absolute())) for path in opened)
    ]
    skipped = [line for each in opened.values() if each is not None for line in each.skipped]
    gone = [f"{error.message}; the run goes on with what it has read" for error in lost.values()]
    return OpenedCorpora(tuple(found), (*skipped, *gone))


async def _opened(path: Path, cache: Path, policy: SourcePolicy, wall: Callable[[], float]) -> _Opened:
    kind = await asyncio.to_thread(_kind_of, path)
    if kind == "index":
        return await asyncio.to_thread(_of_index, path, policy)
    corpus = await asyncio.to_thread(load_corpus, path, policy) if kind == "folder" else undeclared_corpus(path.name)
    index = index_of(path, cache)
    report = await _indexed(path, index, wall)
    left_out = await asyncio.to_thread(_left_out, path, report)
    if not report.documents or not report.chunks:
        why = "; ".join(left_out[:3]) or "it is empty"
        raise CorpusError(str(path), "nothing that can be read", f"{READ} with text are needed ({why})")
    return _Opened(path, index, corpus, (path / CORPUS_FILE).is_file(), left_out)


def standing_of(path: Path, cache: Path, policy: SourcePolicy | None = None) -> str:
    """Return in words how a corpus stands, without reading its documents. Raises CorpusError, as opening it would."""
    kind = _kind_of(path)
    if kind == "index":
        facts = SearchIndex(_of_index(path, policy or SourcePolicy()).index).facts()
        return f"index of {counted(facts.documents)} of {facts.root}"
    if kind == "folder":
        load_corpus(path, policy)
    try:
        facts = SearchIndex(index_of(path, cache)).facts()
    except IndexNotReady:
        return f"{kind}, indexed by its first run"
    return f"{kind}, {counted(facts.documents)} at its latest run"


def corpus_names(paths: Iterable[str | Path]) -> Mapping[str, Sequence[str]]:
    """Return the names of corpora with their paths: that of corpus.yaml, or the last part of the path.

    Corpora of one name go by it together. Nothing is opened but corpus.yaml; one with faults gives no name.
    """
    found: dict[str, list[str]] = {}
    for path in map(str, paths):
        try:
            name = load_corpus(path).name
        except CorpusError:
            name = Path(path).absolute().name or path
        found.setdefault(name, []).append(path)
    return found


def counted(documents: int) -> str:
    """Return a number of documents in words."""
    return f"{documents} {'document' if documents == 1 else 'documents'}"


def index_of(path: Path, cache: Path) -> Path:
    """Return the file of the index of a folder or a document."""
    named = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return cache / f"{named}.db"


def _kind_of(path: Path) -> str:
    """Return `folder`, `index` or `document`. Raises CorpusError for anything else."""
    try:
        if path.is_dir():
            return "folder"
        if not path.exists():
            raise CorpusError(str(path), "not there", "an existing folder, document or index file is needed")
        if not path.is_file():  # reading a pipe could block for ever
            raise CorpusError(str(path), "no file", "a folder, a document or an index file is needed")
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) == _MAGIC:
                return "index"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise CorpusError(str(path), reason, "a folder or a file that can be read is needed") from None
    if path.suffix.lower() not in MOST_BYTES:
        wanted = f"a file of another kind is needed: {READ} ({', '.join(MOST_BYTES)}), or a file of `smr index`"
        raise CorpusError(str(path), path.suffix or "no suffix", wanted)
    return "document"


def _of_index(path: Path, policy: SourcePolicy) -> _Opened:
    try:
        facts = SearchIndex(path).facts()
    except IndexNotReady as error:
        wanted = "an index that this version of `smr index` made is needed"
        raise CorpusError(str(path), error.reason, wanted) from None
    if not facts.documents or not facts.chunks:
        raise CorpusError(str(path), "an index without documents", f"an index with {READ} is needed")
    root = Path(facts.root)
    declared = (root / CORPUS_FILE).is_file()
    corpus = load_corpus(root, policy) if declared else undeclared_corpus(root.name or str(root))
    return _Opened(path, path, corpus, declared)


async def _indexed(path: Path, index: Path, wall: Callable[[], float]) -> IndexReport:
    for _ in range(_TRIES - 1):
        try:
            return await _index_once(path, index, wall)
        except IndexBusy:
            continue
    try:
        return await _index_once(path, index, wall)
    except IndexBusy:
        raise CorpusError(str(path), "busy", "another process is indexing it: an end of that is needed") from None


async def _index_once(path: Path, index: Path, wall: Callable[[], float]) -> IndexReport:
    try:
        return await index_folder(path, index, now=wall())
    except IndexBusy:
        raise
    except OSError as error:
        wanted = f"a folder for its index that can be written is needed ({index.parent}; $SMART_ROUTER_DATA_DIR)"
        raise CorpusError(str(path), error.strerror or str(error), wanted) from None


def _left_out(path: Path, report: IndexReport) -> tuple[str, ...]:
    """Return what the index has not of a corpus, a line each."""
    notes = [note for note in report.notes if note.code not in (OLDER_FORMAT, *INDEXED_ANYWAY)]
    lines = [
        f"{path / note.subject if path.is_dir() else path}: "
        f"{note.code.replace('_', ' ')}{f' ({note.detail})' if note.detail else ''}"
        for note in notes[:_SHOWN]
    ]
    total = sum(count for code, count in report.counts.items() if code not in (OLDER_FORMAT, *INDEXED_ANYWAY))
    if total > len(lines):
        lines.append(f"{path}: {total - len(lines)} more files were left out")
    others = _other_kinds(path)
    if others:
        named = ", ".join(f"{suffix or 'no suffix'} ({count})" for suffix, count in others.most_common(_KINDS))
        more = ", ..." if len(others) > _KINDS else ""
        lines.append(f"{path}: {others.total()} files of other kinds are not read: {named}{more}")
    return tuple(lines)


def _other_kinds(path: Path) -> Counter[str]:
    """Count the files of a folder, hidden ones apart, that are of no kind that is read, by suffix."""
    found: Counter[str] = Counter()
    for _, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        suffixes = (Path(name).suffix.lower() for name in names if name != CORPUS_FILE and not name.startswith("."))
        found.update(suffix for suffix in suffixes if suffix not in MOST_BYTES)
    return found


def _named_apart(opened: Sequence[_Opened], lost: Iterable[Path], faults: list[CorpusError]) -> list[_Opened]:
    """Return corpora of which no two have one name, as documents are known by it; what is declared stays as it is."""
    declared = Counter(each.corpus.name for each in opened if each.is_declared)
    faults += [
        CorpusError(str(each.path / CORPUS_FILE), each.corpus.name, "a name that no other corpus has is needed")
        for each in opened
        if each.is_declared and declared[each.corpus.name] > 1
    ]
    taken: Mapping[str, int] = Counter([*(each.corpus.name for each in opened), *(path.name for path in lost)])
    return [
        each if each.is_declared or taken[each.corpus.name] == 1 else replace(each, corpus=_by_path(each))
        for each in opened
    ]


def _by_path(opened: _Opened) -> Corpus:
    return undeclared_corpus(str(opened.path.resolve()))
