"""Vectors as the index keeps them: of length 1, in 16-bit floats; a cosine keeps three digits, which order needs."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence


def packed(vector: Sequence[float]) -> bytes:
    """The vector, scaled to length 1, as bytes. One of no length, or with a part that is no number, is all zeros."""
    length = math.sqrt(math.fsum(value * value for value in vector))
    usable = 0.0 < length < math.inf  # false for NaN
    return struct.pack(f"<{len(vector)}e", *(value / length if usable else 0.0 for value in vector))
