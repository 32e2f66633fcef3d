"""Values of a run kept as documents of its store: outputs of steps hold their names, and stay small."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from smart_model_router_research.deep.canonical_json import canonical, read_canonical
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.engine import SupportsDocuments

V = TypeVar("V")
MOST_KEPT = 512
"""Values, and documents, that are kept decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDocuments:
    """The documents of a run without their texts, which are documents of the store, named by their hashes."""

    documents: tuple[StoredDocument, ...] = ()


class StoredValues:
    """Reads and writes the values of runs; those that were used last are kept in memory, as they are immutable."""

    def __init__(self, store: SupportsDocuments) -> None:
        self._store = store
        self._values: OrderedDict[tuple[type, str], Any] = OrderedDict()
        self._read: OrderedDict[StoredDocument, ReadDocument] = OrderedDict()

    async def put(self, value: object) -> str:
        """Keep a record; returns its name."""
        name = await self._store.put_document(canonical(encode(value)))
        self._keep(self._values, (type(value), name), value)
        return name

    async def get(self, kind: type[V], name: str) -> V:
        """Return a record. Raises KeyError when it is not there, ArtefactError when it is of another kind."""
        if (kind, name) not in self._values:
            content = await self._store.get_document(name)
            self._keep(self._values, (kind, name), decode(kind, read_canonical(content, name), name))
        self._values.move_to_end((kind, name))
        return cast("V", self._values[kind, name])

    async def put_documents(self, documents: Iterable[StoredDocument]) -> str:
        """Keep documents and their texts; returns the name of the list."""
        rows: list[StoredDocument] = []
        for document in documents:
            await self._store.put_document(document.text.encode("utf-8", "surrogatepass"))
            rows.append(document.without_text())
        return await self.put(KeptDocuments(documents=tuple(rows)))

    async def get_documents(self, name: str) -> dict[str, ReadDocument]:
        """Return documents by id, each read once as long as it is kept. Raises as `get` does."""
        found: dict[str, ReadDocument] = {}
        for row in (await self.get(KeptDocuments, name)).documents:
            if row not in self._read:
                content = await self._store.get_document(row.sha256)
                document = row.with_text(content.decode("utf-8", "surrogatepass"))
                self._keep(self._read, row, ReadDocument(document, document.path))
            self._read.move_to_end(row)
            found[row.id] = self._read[row]
        return found

    def know(self, document: ReadDocument) -> None:
        """Keep a document that was read elsewhere, so that it need not be read again."""
        self._keep(self._read, document.stored.without_text(), document)

    @staticmethod
    def _keep(kept: OrderedDict[Any, Any], key: object, value: object) -> None:
        kept[key] = value
        kept.move_to_end(key)
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
