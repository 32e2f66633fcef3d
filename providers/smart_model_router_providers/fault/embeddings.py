"""Good answers to requests for embeddings."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Sequence

from smart_model_router_providers.fault.answers import ScriptedAnswer, dumps, whole_answer
from smart_model_router_providers.fault.parsed_request import Question

EMBEDDING_DIMENSIONS = 8


def embeddings(question: Question) -> ScriptedAnswer:
    """Write the answer."""
    asked = question.body["input"]
    one = isinstance(asked, str) or isinstance(asked[0], int)
    inputs: Sequence[object] = [asked] if one else asked
    size = question.body.get("dimensions")
    size = size if isinstance(size, int) and 0 < size <= 4096 else EMBEDDING_DIMENSIONS
    packed = question.body.get("encoding_format") == "base64"
    usage = {"prompt_tokens": question.prompt_tokens, "total_tokens": question.prompt_tokens}
    data = [
        {"object": "embedding", "index": index, "embedding": _vector(given, size, packed=packed)}
        for index, given in enumerate(inputs)
    ]
    return whole_answer({"object": "list", "data": data, "model": question.model, "usage": usage})


def _vector(given: object, size: int, *, packed: bool) -> str | list[float]:
    """A unit vector that depends on the input alone."""
    noise = hashlib.shake_256(dumps(given)).digest(2 * size)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", noise)]
    norm = math.sqrt(sum(value * value for value in raw)) or 1.0
    vector = [value / norm for value in raw]
    return base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector
