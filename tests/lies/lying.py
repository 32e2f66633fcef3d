"""One stream of an upstream that may lie: the bytes it sends, how they end, and the truth about them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from smart_model_router.domain.request import Dialect
from tests.lies.answers import Block, Content, Frame, chat_chunk, content_of, frames_of, written

Ending = Literal["close", "reset", "silence"]
ENDINGS: tuple[Ending, ...] = ("close", "reset", "silence")
Truth = Literal["whole", "broken", "replaced", "late"]
"""Whole: nothing is missing, whatever came after the finish. Broken: content may be missing, or is told in two ways.
Replaced: a byte of its prose was no UTF-8. Late: content came after the finish reason."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What an upstream sends. `readable` are the frames before the fault, `later` the readable ones behind it."""

    dialect: Dialect
    lie: str
    raw: bytes
    ending: Ending
    truth: Truth
    blocks: tuple[Block, ...]
    readable: list[Frame]
    later: tuple[Frame, ...] = ()

    @property
    def said(self) -> Content:
        """All the content that a reader may count as said before the fault."""
        return content_of(self.blocks, self.readable)

    @property
    def all_said(self) -> Content:
        """The same, with what is readable behind the fault."""
        return content_of(self.blocks, [*self.readable, *self.later])

    @property
    def meant(self) -> Content:
        """The whole answer, as the ends of its parts repeat it in Responses."""
        pieces = (Frame(b"", "content", at, piece) for at, one in enumerate(self.blocks) for piece in one.pieces)
        return content_of(self.blocks, list(pieces))


def stream(dialect: Dialect, blocks: tuple[Block, ...], name: str, lie: str, dice: random.Random) -> Stream:
    """A stream of these blocks that tells this lie; one that has no room for it tells none."""
    frames = frames_of(dialect, blocks, name)
    told = LIES[lie](dialect, blocks, frames, dice)
    return told if told is not None else _whole(dialect, "none", blocks, frames)


def _joined(frames: list[Frame]) -> bytes:
    return b"".join(frame.raw for frame in frames)


def _whole(dialect: Dialect, lie: str, blocks: tuple[Block, ...], frames: list[Frame], raw: bytes = b"") -> Stream:
    return Stream(dialect, lie, raw or _joined(frames), "close", "whole", blocks, frames)


def _finish(frames: list[Frame]) -> int:
    return next(at for at, frame in enumerate(frames) if frame.role == "finish")


_Lie = Callable[[Dialect, tuple[Block, ...], list[Frame], random.Random], Stream | None]


def _none(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], _: random.Random) -> Stream:
    return _whole(dialect, "none", blocks, frames)


def _inserted(lie: str, *extra: bytes) -> _Lie:
    """Something that means nothing, anywhere."""

    def make(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream:
        at = dice.randrange(len(frames))
        raw = _joined(frames[:at]) + dice.choice(extra) + _joined(frames[at:])
        return _whole(dialect, lie, blocks, frames, raw)

    return make


def _damaged(lie: str, damage: bytes, *, prose_survives: bool = False) -> _Lie:
    """One content event with bytes in it that do not belong there."""

    def make(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream:
        at = dice.choice([at for at, frame in enumerate(frames) if frame.is_content])
        frame = frames[at]
        said = json.dumps(frame.piece, ensure_ascii=False).encode()
        head, found, tail = frame.raw.rpartition(said)
        assert found
        broken = head + said[:-1] + damage + b'"' + tail
        raw = _joined(frames[:at]) + broken + _joined(frames[at + 1 :])
        if prose_survives and blocks[frame.block].kind != "call":
            mended = replace(frame, piece=frame.piece + damage.decode(errors="replace"))
            came = [*frames[:at], mended, *frames[at + 1 :]]
            return Stream(dialect, lie, raw, "close", "replaced", blocks, came)
        return Stream(dialect, lie, raw, "close", "broken", blocks, frames[:at], tuple(frames[at + 1 :]))

    return make


def _glued(lie: str, between: bytes) -> _Lie:
    """Two events where one should be: in one line of data, or in two."""

    def make(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream | None:
        places = [at for at in range(len(frames) - 1) if frames[at].is_content and frames[at + 1].is_content]
        if not places:
            return None
        at = dice.choice(places)
        second = frames[at + 1].raw.rpartition(b"data: ")[2]
        raw = _joined(frames[:at]) + frames[at].raw.rstrip(b"\n") + between + second + _joined(frames[at + 2 :])
        return Stream(dialect, lie, raw, "close", "broken", blocks, frames[:at], tuple(frames[at + 2 :]))

    return make


def _cut(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream:
    """The bytes end anywhere, in any way."""
    ending = dice.choice(ENDINGS)
    size = dice.randrange(len(_joined(frames)))
    came: list[Frame] = []
    left = size
    for frame in frames:
        # A frame that lacks its blank line counts where the transport ended well.
        if left < (len(frame.raw.rstrip(b"\n")) if ending == "close" else len(frame.raw)):
            break
        left -= len(frame.raw)
        came.append(frame)
    truth: Truth = "whole" if any(frame.role == "finish" for frame in came) else "broken"
    return Stream(dialect, "cut", _joined(frames)[:size], ending, truth, blocks, came)


def _unterminated(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream:
    """The finish reason is the last there is, or there is usage behind it; and then the transport ends in any way."""
    ends = dice.randrange(_finish(frames) + 1, len(frames) + 1)
    came = frames[:ends]
    return Stream(dialect, "unterminated", _joined(came), dice.choice(ENDINGS), "whole", blocks, came)


ERRORS: Mapping[Dialect, bytes] = {
    "chat": b'data: {"error": {"message": "overloaded", "type": "server_error", "code": 503}}\n\n',
    "messages": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n',
    "responses": b'event: error\ndata: {"type": "error", "code": "server_error", "message": "oh"}\n\n',
}
GARBAGE = (b'data: {"choices": [{"delta\n\n', b"data: oh no\n\n", b'data: {"a": "\x01"}\n\n', b"data: \xff\n\n")


def _failed(*, late: bool) -> _Lie:
    """An error event, or garbage, amid the content or after the finish."""

    def make(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream | None:
        finish = _finish(frames)
        fault = dice.choice((ERRORS[dialect], *GARBAGE))
        if not late:
            at = dice.randrange(1, finish + 1)
            raw = _joined(frames[:at]) + fault + _joined(frames[at:])
            # Of an error that the upstream tells nothing behind it is readable, of garbage all.
            later = () if fault == ERRORS[dialect] else tuple(frames[at:])
            return Stream(dialect, "failed", raw, "close", "broken", blocks, frames[:at], later)
        if dialect == "responses":  # its finish is its end
            return None
        at = dice.randrange(finish + 1, len(frames))
        raw = _joined(frames[:at]) + fault + _joined(frames[at:])
        return _whole(dialect, "late fault", blocks, frames, raw)

    return make


def _finished_twice(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """The same finish reason once more."""
    if dialect == "responses":
        return None
    finish = _finish(frames)
    at = dice.randrange(finish + 1, len(frames))
    raw = _joined(frames[:at]) + frames[finish].raw + _joined(frames[at:])
    return _whole(dialect, "finished twice", blocks, frames, raw)


def _content_later(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """More text, after the finish reason."""
    del dice
    if dialect == "responses":
        return None
    finish = _finish(frames)
    if dialect == "chat":
        more = chat_chunk("late", {"content": "and more"})
    else:
        delta = {"type": "text_delta", "text": "and more"}
        more = written("messages", {"type": "content_block_delta", "index": 0, "delta": delta})
    raw = _joined(frames[: finish + 1]) + more + _joined(frames[finish + 1 :])
    return Stream(dialect, "content later", raw, "close", "late", blocks, frames[: finish + 1])


def _open_block(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream | None:
    """A block that never ends."""
    if dialect != "messages":
        return None
    at = dice.choice([at for at, frame in enumerate(frames) if frame.role == "close"])
    came = [*frames[:at], *frames[at + 1 :]]
    return Stream(dialect, "open block", _joined(came), dice.choice(ENDINGS), "broken", blocks, came)


def _astray(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream | None:
    """A piece of arguments behind the end of its call."""
    del dice
    calls = [at for at, frame in enumerate(frames) if frame.is_content and blocks[frame.block].kind == "call"]
    if dialect != "messages" or not calls:
        return None
    last = calls[-1]
    assert frames[last + 1].role == "close"
    raw = _joined([*frames[:last], frames[last + 1], frames[last], *frames[last + 2 :]])
    return Stream(dialect, "astray", raw, "close", "broken", blocks, frames[:last])


def _unfinished(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random) -> Stream:
    """A terminator, and no reason."""
    del dice
    came = [frame for frame in frames if frame.role != "finish"]
    return Stream(dialect, "unfinished", _joined(came), "close", "broken", blocks, came)


def _undelivered(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """The last deltas of a part never come, or none: the event that repeats the part, or the answer, has their text."""
    number = dice.randrange(len(blocks))
    block = blocks[number]
    kept = 0 if dialect == "messages" else dice.randrange(len(block.pieces))
    at_the_end = dice.random() < 0.5
    if at_the_end and any(later.kind == block.kind for later in blocks[number + 1 :]):
        return None  # it would come behind a later part of its kind
    missing = "".join(block.pieces[kept:])
    deltas = [frame for frame in frames if frame.block == number and frame.is_content]
    left = [frame for frame in frames if frame not in deltas[kept:]]
    told = _TOLD[dialect](left, number, block, kept, missing, dice, at_the_end)
    return None if told is None else _whole(dialect, "undelivered", blocks, told)


def _told_by_responses(
    frames: list[Frame], number: int, block: Block, kept: int, missing: str, dice: random.Random, at_the_end: bool
) -> list[Frame]:
    close = next(frame for frame in frames if frame.block == number and frame.role == "close")
    if not at_the_end:
        return [replace(frame, piece=missing) if frame is close else frame for frame in frames]
    dropped = [close]
    if not kept and dice.random() < 0.5:  # not even its begin is told
        dropped = [frame for frame in frames if frame.block == number]
    left = [frame for frame in frames if frame not in dropped]
    finish = _finish(left)
    return [*left[:finish], Frame(b"", "content", number, missing), *left[finish:]]


def _told_by_chat(
    frames: list[Frame], number: int, block: Block, kept: int, missing: str, dice: random.Random, at_the_end: bool
) -> list[Frame]:
    """A message in the place of a delta: in a chunk of its own, or beside the finish reason."""
    del dice
    said, name = "".join(block.pieces), _data(frames[0])["model"]
    if block.kind == "call":
        opening = _data(next(frame for frame in frames if frame.block == number))["choices"][0]["delta"]["tool_calls"][
            0
        ]
        call = {"id": opening["id"], "type": "function", "function": {"name": block.name, "arguments": said}}
        message: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        message = {"role": "assistant", "content" if block.kind == "text" else "reasoning_content": said}
    left = [frame for frame in frames if kept or block.kind != "call" or frame.block != number]
    chunk = {"id": f"chatcmpl-{name}", "object": "chat.completion.chunk", "model": name}
    if at_the_end:
        at = _finish(left)
        finish = _data(left[at])["choices"][0]["finish_reason"]
        raw = written("chat", {**chunk, "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
        return [*left[:at], Frame(b"", "content", number, missing), Frame(raw, "finish"), *left[at + 1 :]]
    at = _behind(left, number)
    raw = written("chat", {**chunk, "choices": [{"index": 0, "message": message}]})
    return [*left[:at], Frame(raw, "content", number, missing), *left[at:]]


def _behind(frames: list[Frame], number: int) -> int:
    """The place behind the last frame of a part, or of those before it."""
    return 1 + max((at for at, frame in enumerate(frames) if 0 <= frame.block <= number), default=0)


def _told_by_messages(
    frames: list[Frame], number: int, block: Block, kept: int, missing: str, dice: random.Random, at_the_end: bool
) -> list[Frame]:
    """The start of a block holds all of it."""
    del kept, dice, at_the_end
    at = next(at for at, frame in enumerate(frames) if frame.block == number)
    kind, key = ("input", json.loads(missing)) if block.kind == "call" else (block.kind, missing)
    data = _data(frames[at])
    data["content_block"][kind] = key
    return [*frames[:at], replace(frames[at], raw=written("messages", data), piece=missing), *frames[at + 1 :]]


_TOLD: Mapping[Dialect, Callable[..., list[Frame] | None]] = {
    "responses": _told_by_responses,
    "chat": _told_by_chat,
    "messages": _told_by_messages,
}


def _data(frame: Frame) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(frame.raw.rpartition(b"data: ")[2])
    return data


def _contradicted(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """A delta is missing in the middle of a part: what repeats the part, or the answer, tells another text."""
    places = [at for at, frame in enumerate(frames) if frame.is_content and _is_hole(blocks, frames, at)]
    if dialect == "messages" or not places:
        return None
    at = dice.choice(places)
    number = frames[at].block
    if dialect == "chat":
        finish = _finish(frames)
        message = _chat_message(blocks, frames)
        data = _data(frames[finish])
        data["choices"][0] = {**data["choices"][0], "message": message}
        told = [*frames[:finish], Frame(written("chat", data), "finish"), *frames[finish + 1 :]]
        end = finish
    else:
        told = frames
        end = next(place for place, frame in enumerate(frames) if frame.block == number and frame.role == "close")
        if dice.random() < 0.5:
            told = [*frames[:end], replace(frames[end], raw=b": no end of it\n\n"), *frames[end + 1 :]]
            end = _finish(told)
    raw = _joined([*told[:at], *told[at + 1 :]])
    readable = [*told[:at], *told[at + 1 : end]]
    return Stream(dialect, "contradicted", raw, "close", "broken", blocks, readable, tuple(told[end + 1 :]))


def _is_hole(blocks: tuple[Block, ...], frames: list[Frame], at: int) -> bool:
    """Whether the rest of a part is no beginning of it without this piece."""
    mine = [frame for frame in frames if frame.block == frames[at].block]
    rest = "".join(frame.piece for frame in mine if frame is not frames[at])
    return not "".join(blocks[frames[at].block].pieces).strip().startswith(rest.strip())


def _chat_message(blocks: tuple[Block, ...], frames: list[Frame]) -> dict[str, Any]:
    """The whole answer as a message."""
    said = content_of(blocks, [frame for frame in frames if blocks[frame.block].kind != "call"])
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    calls = []
    for number, block in enumerate(blocks):
        if block.kind == "call":
            opening = next(frame for frame in frames if frame.block == number)
            made = _data(opening)["choices"][0]["delta"]["tool_calls"][0]
            function = {"name": block.name, "arguments": "".join(block.pieces)}
            calls.append({"id": made["id"], "type": "function", "function": function})
    return {**message, "tool_calls": calls} if calls else message


def _other_input(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """A call whose start holds other arguments than its deltas."""
    del dice
    calls = [at for at, block in enumerate(blocks) if block.kind == "call"]
    if dialect != "messages" or not calls:
        return None
    at = next(at for at, frame in enumerate(frames) if frame.block == calls[0])
    data = _data(frames[at])
    data["content_block"]["input"] = {"path": "/"}
    told = [*frames[:at], replace(frames[at], raw=written("messages", data)), *frames[at + 1 :]]
    end = next(place for place, frame in enumerate(told) if frame.block == calls[0] and frame.role == "close")
    return Stream(dialect, "other input", _joined(told), "close", "broken", blocks, told[:end], tuple(told[end + 1 :]))


def _interleaved(
    dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], dice: random.Random
) -> Stream | None:
    """The pieces of two calls come by turns."""
    calls = [at for at, block in enumerate(blocks) if block.kind == "call"]
    if len(calls) < 2:
        return None
    first, second = ([frame for frame in frames if frame.block == number] for number in calls[:2])
    start = frames.index(first[0])
    by_turns = [first.pop(0)]
    while first or second:
        source = dice.choice([one for one in (first, second) if one])
        by_turns.append(source.pop(0))
    return _whole(dialect, "interleaved", blocks, [*frames[:start], *by_turns, *frames[start + len(by_turns) :]])


def _unplaced(dialect: Dialect, blocks: tuple[Block, ...], frames: list[Frame], _: random.Random) -> Stream | None:
    """No event says the place of its item, only its id (llama.cpp)."""
    if dialect != "responses":
        return None
    told = []
    for frame in frames:
        data = _data(frame)
        data.pop("output_index", None)
        told.append(replace(frame, raw=written("responses", data)))
    return _whole(dialect, "unplaced", blocks, told)


LIES: Mapping[str, _Lie] = {
    "none": _none,
    "comment": _inserted("comment", b": still here\n\n", b"data:\n\n", b"event: x\n\n", b"\n\n\n"),
    "bad utf-8": _damaged("bad utf-8", b"\xff", prose_survives=True),
    "half a character": _damaged("half a character", b"\xe2\x82", prose_survives=True),
    "control character": _damaged("control character", b"\x07"),
    "tab": _damaged("tab", b"\t"),
    "line break": _damaged("line break", b"\n"),
    "carriage return": _damaged("carriage return", b"\r"),
    "blank line": _damaged("blank line", b"\n\n"),
    "bad escape": _damaged("bad escape", b"\\x41"),
    "half an escape": _damaged("half an escape", b"\\u12"),
    "bare quote": _damaged("bare quote", b'"'),
    "glued": _glued("glued", b""),
    "two lines": _glued("two lines", b"\ndata: "),
    "no data": _glued("no data", b"\n"),
    "cut": _cut,
    "unterminated": _unterminated,
    "failed": _failed(late=False),
    "late fault": _failed(late=True),
    "finished twice": _finished_twice,
    "content later": _content_later,
    "open block": _open_block,
    "astray": _astray,
    "unfinished": _unfinished,
    "undelivered": _undelivered,
    "contradicted": _contradicted,
    "other input": _other_input,
    "interleaved": _interleaved,
    "unplaced": _unplaced,
}
