"""Documents of languages without spaces are found by words of two characters and of one; the tokenizer is a port."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from smart_model_router_scoring.fusion import FusionConfig
from smart_model_router_scoring.retrieval import (
    OLDER_FORMAT,
    HashedEmbedder,
    QueryOrchestrator,
    RetrievalConfig,
    SearchIndex,
    index_folder,
)
from smart_model_router_scoring.retrieval.strategies import KeywordSearch
from tests.unit.scoring.retrieval.folders import NOW, indexed

pytestmark = pytest.mark.asyncio
LANGUAGES = {
    "ja.md": "# 旅行\n\n今日は東京都庁の展望室から夜景を見た。黒猫もいた。\n",
    "zh.txt": "北京是中国的首都,有很多大学和博物馆。\n",
    "ko.txt": "나는 서울에서 친구를 만났다.\n",
    "th.txt": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย\n",
    "en.md": "# Cities\n\nParis is the capital of France; its café culture is famous.\n",
}


@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("東京", "ja.md"),
        ("猫", "ja.md"),
        ("旅行", "ja.md"),
        ("夜景の展望", "ja.md"),
        ("博物馆", "zh.txt"),
        ("大学", "zh.txt"),
        ("서울", "ko.txt"),
        ("กรุงเทพ", "th.txt"),
        ("ประเทศไทย", "th.txt"),
        ("cafe in Paris", "en.md"),
    ],
)
@pytest.mark.parametrize("embedder", [None, HashedEmbedder()], ids=["keywords", "default"])
async def test_a_word_is_found_wherever_it_stands(
    tmp_path: Path, question: str, file: str, embedder: HashedEmbedder | None
) -> None:
    """Its document is the first one, with the shipped threshold."""
    db, _ = await indexed(tmp_path, LANGUAGES, embedder)
    found = await QueryOrchestrator(db, embedder=embedder).query(question)
    assert [passage.path for passage in found.passages[:1]] == [file]


async def test_characters_that_do_not_stand_together_are_no_word(tmp_path: Path) -> None:
    """京東 has the characters of 東京; a sentence with both has no pair of it."""
    db, _ = await indexed(tmp_path, {"a.txt": "京のとなりの東", "b.txt": "京東"})
    assert await QueryOrchestrator(db).query("東京") == []


class Letters:
    """Every letter is a term."""

    name = "letters"

    def documents(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Tokenizer`."""
        return [self.question(text) for text in texts]

    def question(self, text: str) -> list[str]:
        """See `Tokenizer`."""
        return [letter for letter in text.lower() if letter.isalpha()]


async def test_a_tokenizer_of_ones_own_cuts_documents_and_questions(tmp_path: Path) -> None:
    """An index says whose terms it has: strategies of another tokenizer take no part, indexing makes it anew."""
    db, _ = await indexed(tmp_path, {"a.txt": "xylophone", "b.txt": "tea"})
    keep = RetrievalConfig(fusion=FusionConfig(min_confidence=0.0))
    mine = QueryOrchestrator(db, strategies=[KeywordSearch(Letters())], config=keep)
    with pytest.raises(
        RuntimeError, match="the index has terms of porter-pairs-1, the question would be cut by letters"
    ):
        await mine.query("y")
    report = await index_folder(tmp_path / "docs", db, now=NOW, tokenizer=Letters())
    [note] = report.notes
    assert (note.code, report.added, SearchIndex(db).facts().tokenizer) == (OLDER_FORMAT, 2, "letters")
    assert "tokenizer porter-pairs-1" in note.detail
    assert [passage.path for passage in (await mine.query("y")).passages] == ["a.txt"]
