"""Token estimates for media: one table of rules, a row for each family of models. Usage corrects them.

Pictures count by pixels, documents by pages, recordings by seconds, never by bytes. A rule scales a picture down first,
as its provider does, so an estimate is bounded whatever a header says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from smart_model_router.domain.media_parts import Medium

UNKNOWN_TOKENS = 1_500
"""Tokens of a medium of unknown size: behind a link, at a provider, or with a header that cannot be read."""
_MOST_PAGES = 1_000
"""Pages: no provider takes more of one document."""
_MOST_SECONDS = 36_000.0
"""Seconds: nor of one recording (Gemini takes 9.5 hours)."""
_TEXT_BYTES = 4
"""Bytes a token of a file that is text."""


class PictureRule(Protocol):
    """The way a family counts a picture."""

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of a picture of these pixels; `low` when the caller asked for low detail."""
        ...


@dataclass(frozen=True, slots=True)
class Tiles:
    """`base`, and `tile` for each square of 512 pixels, after scaling into 2048 x 2048 and to a short side of 768."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of a picture of these pixels."""
        if low:
            return self.base
        scale = min(1.0, 2048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return self.base + self.tile * _squares(width * scale, 512) * _squares(height * scale, 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """`each` for every square of `side` pixels, scaled down to `most` of them; `rough` of them in low detail."""

    side: int
    most: int
    each: float = 1.0
    rough: int | None = None

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of a picture of these pixels."""
        most = self.most if self.rough is None or not low else min(self.most, self.rough)
        return math.ceil(self.each * min(most, _squares(width, self.side) * _squares(height, self.side)))


@dataclass(frozen=True, slots=True)
class Area:
    """A token for 750 pixels, scaled to `long` pixels a side and `most` tokens."""

    long: int
    most: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:  # noqa: ARG002 - there is no low detail
        """Tokens of a picture of these pixels."""
        scale = min(1.0, self.long / max(width, height))
        return min(self.most, math.ceil(width * scale * height * scale / 750))


@dataclass(frozen=True, slots=True)
class Crops:
    """258 for a small picture, and for each crop of a larger one, which is scaled to 3,072 pixels a side.

    Crops are two thirds of the short side, at least 256 and at most 768 pixels.
    """

    each: int = 258
    small: int = 384
    long: int = 3_072

    def tokens(self, width: int, height: int, *, low: bool) -> int:
        """Tokens of a picture of these pixels."""
        if low or max(width, height) <= self.small:
            return self.each
        scale = min(1.0, self.long / max(width, height))
        side = min(768, max(256, int(min(width, height) * scale / 1.5)))
        return self.each * _squares(width * scale, side) * _squares(height * scale, side)


@dataclass(frozen=True, slots=True)
class Flat:
    """The same for every picture."""

    each: int
    rough: int

    def tokens(self, width: int, height: int, *, low: bool) -> int:  # noqa: ARG002 - of any size
        """Tokens of a picture of these pixels."""
        return self.rough if low else self.each


@dataclass(frozen=True, slots=True)
class MediaRules:
    """The rules of one family: tokens a picture, a page of a PDF, a second of sound, a second of video."""

    picture: PictureRule
    page: int
    sound: float
    video: float
    source: str


_OPENAI = "OpenAI, Images and vision (calculating costs); File inputs: a page is its text and a picture of it"
_CLAUDE = "Anthropic, Vision; PDF support: 1,500 to 3,000 a page of text, and the page as a picture"
_GEMINI = "Google, Understand and count tokens; Media resolution"
_NONE = "no documentation: the spec's default"

FAMILIES: Mapping[str, MediaRules] = MappingProxyType(
    {
        "": MediaRules(Patches(28, 2_048), 1_500, 25, 150, _NONE),
        "gpt-4o": MediaRules(Tiles(85, 170), 1_300, 10, 150, _OPENAI),
        "gpt-4o-mini": MediaRules(Tiles(2_833, 5_667), 26_000, 10, 150, _OPENAI),
        "o-series": MediaRules(Tiles(75, 150), 1_200, 10, 150, _OPENAI),
        "gpt-5": MediaRules(Tiles(70, 140), 1_200, 10, 150, _OPENAI),
        "patches": MediaRules(Patches(32, 2_500, rough=256), 2_000, 10, 150, _OPENAI),
        "patches-mini": MediaRules(Patches(32, 1_536, 1.62, rough=256), 2_000, 10, 150, _OPENAI),
        "patches-o4-mini": MediaRules(Patches(32, 1_536, 1.72, rough=256), 2_000, 10, 150, _OPENAI),
        "patches-nano": MediaRules(Patches(32, 1_536, 2.46, rough=256), 2_800, 10, 150, _OPENAI),
        "claude": MediaRules(Area(1_568, 1_568), 2_500, 25, 150, _CLAUDE),
        "claude-wide": MediaRules(Area(2_576, 4_784), 3_500, 25, 150, _CLAUDE),
        "gemini": MediaRules(Crops(), 258, 32, 300, _GEMINI),
        "gemini-3": MediaRules(Flat(1_120, 280), 560, 32, 100, _GEMINI),
        "pixtral": MediaRules(Patches(16, 4_096), 1_500, 25, 150, "Mistral, Vision: patches of 16 pixels, to 1,024"),
        "mistral": MediaRules(Patches(28, 3_025), 1_500, 12.5, 150, "Mistral, Vision: patches of 28 pixels, to 1,540"),
        "grok": MediaRules(
            Patches(448, 7, 256), 1_500, 25, 150, "xAI, Image understanding: 256 a tile, at most 6 and one"
        ),
    }
)
"""Every family by name; "" is that of models of which nothing is known."""


def media_tokens(media: Iterable[Medium], family: str) -> int:
    """The estimated tokens of `media` for a model of `family`."""
    rules = FAMILIES[family]
    return sum(_tokens(medium, rules) for medium in media)


def _tokens(medium: Medium, rules: MediaRules) -> int:
    if medium.width is not None and medium.height is not None:
        return rules.picture.tokens(medium.width, medium.height, low=medium.low)
    if medium.pages is not None:
        return rules.page * min(medium.pages, _MOST_PAGES)
    if medium.seconds is not None:
        rate = rules.sound if medium.kind == "audio" else rules.video
        return math.ceil(rate * min(medium.seconds, _MOST_SECONDS))
    if medium.kind == "text" and medium.size:
        return math.ceil(medium.size / _TEXT_BYTES)
    return UNKNOWN_TOKENS


def _squares(length: float, side: int) -> int:
    """The number of squares that cover a length in pixels."""
    return max(1, math.ceil(length / side))
