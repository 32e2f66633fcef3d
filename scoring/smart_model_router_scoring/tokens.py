"""Text becomes words: cut at spaces and signs, and in scripts without spaces into pairs of neighbouring characters.

Pure. A pair is found wherever it stands, so 東京 is found in 東京都 and กรุงเทพ in a Thai sentence. The script of each
run of characters decides; a text may have several.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

_CJK = (
    r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",  # Han
    r"\u3041-\u309f\u30fc",  # Hiragana
    r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff",  # Katakana
    r"\uac00-\ud7a3\u1100-\u11ff",  # Hangul: it has spaces, but particles stand right behind the nouns
)
_ALPHABETS = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e",  # Thai
    r"\u0e81-\u0ece\u0edc-\u0edf",  # Lao
    r"\u1780-\u17d3\u17d7\u17dc",  # Khmer
    r"\u1000-\u103f\u1050-\u108f\u109a-\u109f",  # Myanmar
)
_UNSPACED = "".join((*_CJK, *_ALPHABETS))
_RUNS = "|".join(f"[{script}]+" for script in (*_CJK, *_ALPHABETS))
_WORDS = (re.compile(r"[^\W_]+"), re.compile(rf"[^\W_{_UNSPACED}]+|{_RUNS}"))
_TAG_WORDS = (re.compile(r"\w+"), re.compile(rf"[^\W{_UNSPACED}]+|{_RUNS}"))
"""Of texts without characters of scripts without spaces, which take a third of the time, and of all."""
_FIRST_UNSPACED = re.compile(f"[{_UNSPACED}]")
_SYLLABLE = re.compile(f"[{''.join(_CJK)}]")


def normal(text: str) -> str:
    """The text as it is compared: compatibility forms unified (NFKC), case folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_unspaced(word: str) -> bool:
    """True for a word of a script without spaces."""
    return _FIRST_UNSPACED.match(word) is not None


def document_words(text: str) -> list[str]:
    """The words of a text, folded, in order.

    In CJK a character is a word and so is each pair of neighbours, so that a question of one character finds something.
    """
    return _words(_WORDS, text, single=True)


def question_words(text: str) -> list[str]:
    """The words of a question. A character of CJK is one only where it stands alone: pairs say more."""
    return _words(_WORDS, text, single=False)


def tag_words(text: str, *, single: bool = False) -> frozenset[str]:
    """The distinct words of a question; with `single`, as `document_words`, of a tag. `_` belongs to a word here."""
    return frozenset(_words(_TAG_WORDS, text, single=single))


def _words(patterns: tuple[re.Pattern[str], re.Pattern[str]], text: str, *, single: bool) -> list[str]:
    folded = normal(text)
    spaced, all_scripts = patterns
    if folded.isascii() or _FIRST_UNSPACED.search(folded) is None:
        return spaced.findall(folded)
    runs = all_scripts.findall(folded)
    return [word for run in runs for word in (_pairs(run, single) if is_unspaced(run) else (run,))]


def _pairs(run: str, single: bool) -> Iterator[str]:
    characters = _characters(run)
    if len(characters) == 1:
        yield run
        return
    single = single and _SYLLABLE.match(run) is not None
    for one, other in pairwise(characters):
        if single:
            yield one
        yield one + other
    if single:
        yield characters[-1]


def _characters(run: str) -> list[str]:
    """The characters with the marks that belong to them: a Thai vowel above or below is part of its consonant."""
    found: list[str] = []
    for character in run:
        if found and unicodedata.category(character)[0] == "M":
            found[-1] += character
        else:
            found.append(character)
    return found
