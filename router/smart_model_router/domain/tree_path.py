"""The path of a value in a tree of data: `models.smart.tiers[0].targets[1]`."""

from __future__ import annotations

import re

from smart_model_router.domain.redaction import masked

Path = tuple[str | int, ...]

_BARE = re.compile(r"[\w-]+")


def spelled(path: Path, root: str = "configuration") -> str:
    """The path as people write it, `root` where it is empty; a key that is no plain word stands in quotes."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE.fullmatch(step) and step == masked(step):
            text += f".{step}" if text else step
        else:
            text += f"[{masked(step[:100])!r}]"
    return text or root
