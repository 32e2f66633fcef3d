"""What a translation must know beside the body."""

from __future__ import annotations

from dataclasses import dataclass

OUTPUT_CAP = "max_tokens"


@dataclass(frozen=True, slots=True)
class Terms:
    """`family` is whose model answers: reasoning that was sealed for it goes back to it and to nobody else.

    `reasoning` says that the model takes a word on how long to think. `output_cap` is the field in which its Chat
    endpoint takes the cap on the answer. `created` is the stamp of answers in dialects that have one, epoch seconds.
    """

    family: str = ""
    reasoning: bool = False
    output_cap: str = OUTPUT_CAP
    created: int = 0
