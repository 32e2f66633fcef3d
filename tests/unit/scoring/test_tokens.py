"""Text becomes words: folded, and cut in pairs where a script has no spaces."""

from __future__ import annotations

import pytest

from smart_model_router_scoring.recall.memory import RecallSettings, tag_score, words
from smart_model_router_scoring.tokens import document_words, question_words, tag_words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\uff26\uff55\uff4c\uff4c WIDTH, straße; don't", ["full", "width", "strasse", "don", "t"]),
        ("東京", ["東京"]),
        ("東京都へ", ["東京", "京都", "へ"]),
        ("猫", ["猫"]),
        ("サーバーの設定3件", ["サー", "ーバ", "バー", "の", "設定", "3", "件"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("กรุงเทพ", ["กรุ", "รุง", "งเ", "เท", "ทพ"]),
        ("ดี๊", ["ดี๊"]),
        ("ປະເທດ", ["ປະ", "ະເ", "ເທ", "ທດ"]),
        ("ភ្នំពេញ", ["ភ្នំ", "នំពេ", "ពេញ"]),
        ("မြန်မာ", ["မြန်", "န်မာ"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("uses 東京server_2", ["uses", "東京", "server", "2"]),
        ("...", []),
    ],
)
def test_a_question_is_cut_at_spaces_or_in_pairs(text: str, wanted: list[str]) -> None:
    """By the script of each run; a mark belongs to its character, a lone character is a word."""
    assert question_words(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("東京都", ["東", "東京", "京", "京都", "都"]),
        ("猫", ["猫"]),
        ("서울", ["서", "서울", "울"]),
        ("กรุงเทพ", ["กรุ", "รุง", "งเ", "เท", "ทพ"]),
        ("plain words", ["plain", "words"]),
    ],
)
def test_a_document_has_single_characters_of_cjk_too(text: str, wanted: list[str]) -> None:
    """A character alone is a word there; a letter of an alphabet is none."""
    assert document_words(text) == wanted


@pytest.mark.parametrize("question", ["東京", "京都", "猫", "東京都", "กรุงเทพ", "서울", "サーバー"])
def test_a_document_has_every_word_of_a_question_that_it_contains(question: str) -> None:
    """Wherever it stands in a run."""
    text = "今日は東京都で猫サーバーを見た。เมืองกรุงเทพมหานคร 나는 서울에서 산다"
    assert set(question_words(question)) <= set(document_words(text))


def test_tags_are_found_by_parts_of_them() -> None:
    """A tag is cut as a document, a question as one."""
    assert tag_score("東京タワー", ["東京"]) == pytest.approx(1 / 3)
    assert tag_score("猫の写真", ["黒猫", "写真"]) == pytest.approx(2 / 3)
    assert tag_score("กรุงเทพ", ["เที่ยวกรุงเทพ"]) == 1.0
    assert tag_score("kyoto", ["東京"]) == 0.0
    assert tag_score("東京 guide", ["東京"], RecallSettings(tag_score_token_cap=1)) == 1.0


def test_an_underscore_belongs_to_a_word_of_a_tag() -> None:
    """As it did before scripts without spaces were cut."""
    assert words("retry_after, \uff21\uff22\uff23") == {"retry_after", "abc"}
    assert tag_words("東京_2") == {"東京", "_2"}
