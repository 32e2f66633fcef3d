"""Addresses that may be asked for, as they are written, and answers that are unpacked within a limit."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.web.fetch_rules import FetchRefusal, FetchRefused, canonical, shown, target_of
from smart_model_router_research.web.unpacking import NotPacked, TooMuch, Unpacker


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("ftp://example.org/a", FetchRefusal.SCHEME),
        ("file:///etc/passwd", FetchRefusal.SCHEME),
        ("gopher://example.org/", FetchRefusal.SCHEME),
        ("javascript:alert(1)", FetchRefusal.SCHEME),
        ("data:text/html,hello", FetchRefusal.SCHEME),
        ("example.org/a", FetchRefusal.SCHEME),
        ("//example.org/a", FetchRefusal.SCHEME),
        ("http://user@example.org/", FetchRefusal.CREDENTIALS),
        ("http://user:secret@example.org/", FetchRefusal.CREDENTIALS),
        ("http://@example.org/", FetchRefusal.CREDENTIALS),
        ("http://example.org:8080/", FetchRefusal.PORT),
        ("http://example.org:22/", FetchRefusal.PORT),
        ("http://example.org:0/", FetchRefusal.PORT),
        ("http://example.org:99999/", FetchRefusal.MALFORMED),
        ("http://example.org:x/", FetchRefusal.MALFORMED),
        ("http:///a", FetchRefusal.MALFORMED),
        ("http://", FetchRefusal.MALFORMED),
        ("http://[::1/", FetchRefusal.MALFORMED),
        ("http://example.org\\@127.0.0.1/", FetchRefusal.MALFORMED),
        ("http://example.org/a b", FetchRefusal.MALFORMED),
        ("http://example.org/\r\nHost: x", FetchRefusal.MALFORMED),
        (" http://example.org/", FetchRefusal.MALFORMED),
        ("http://example.org/" + "a" * 2_048, FetchRefusal.MALFORMED),
    ],
)
def test_an_address_is_refused_by_name(url: str, refusal: FetchRefusal) -> None:
    """Before anything is resolved; the message has no password and one line."""
    with pytest.raises(FetchRefused) as caught:
        target_of(url)

    assert caught.value.refusal is refusal
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://example.org", "http://example.org:80"),
        ("https://Example.ORG/a?b=c#d", "https://example.org:443"),
        ("http://example.org:443/", "http://example.org:443"),
        ("https://bücher.example/", "https://bücher.example:443"),
        ("http://0x7f.1/", "http://0x7f.1:80"),
    ],
)
def test_an_address_is_taken_by_its_host_and_port(url: str, place: str) -> None:
    """The spelling of a host is not judged: its addresses are, once it is resolved."""
    assert target_of(url).place == place


def test_two_spellings_of_an_address_are_one() -> None:
    """Without the fragment, the port that goes without saying, and capitals of the host."""
    assert canonical("HTTP://Example.org:80/a#b") == canonical("http://example.org/a")
    assert canonical("no address") == "no address"


@given(st.text(max_size=400))
def test_any_text_is_an_address_or_a_typed_refusal(text: str) -> None:
    """And what is shown of it is one line of 200 characters at most."""
    assert len(shown(text)) <= 200
    try:
        target = target_of(text)
    except FetchRefused:
        return
    assert target.url.scheme in ("http", "https")
    assert target.port in (80, 443)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
    "": bytes,
}


def bare(raw: bytes) -> bytes:
    """Return raw deflate, without a header."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush()


@pytest.mark.parametrize("encoding", PACKED)
@given(content=st.binary(max_size=300_000), step=st.sampled_from([1, 7, 100_000]))
def test_what_was_packed_is_unpacked_in_any_pieces(encoding: str, content: bytes, step: int) -> None:
    """Byte for byte, however it was cut."""
    packed = PACKED[encoding](content[: 2_000 if step == 1 else None])
    unpacker = Unpacker(encoding, 1_000_000)
    found = b"".join(unpacker.feed(packed[at : at + step]) for at in range(0, len(packed), step))
    unpacker.finish()

    assert found == content[: 2_000 if step == 1 else None]


def test_bare_deflate_is_unpacked_too() -> None:
    """Servers send it under the name of zlib's form."""
    unpacker = Unpacker("deflate", 1_000_000)
    assert unpacker.feed(bare(b"hello" * 50_000)) == b"hello" * 50_000
    unpacker.finish()


@pytest.mark.parametrize("packer", [gzip.compress, zlib.compress, bare], ids=["gzip", "zlib", "bare"])
def test_a_bomb_is_stopped_while_it_unpacks(packer: Callable[[bytes], bytes]) -> None:
    """One of 50 MB is ended at its limit: the memory that it takes is about that limit, and not what it holds."""
    bomb = packer(bytes(50_000_000))
    unpacker = Unpacker("gzip" if packer is gzip.compress else "deflate", 1_000_000)
    tracemalloc.start()
    with pytest.raises(TooMuch):
        unpacker.feed(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 4_000_000


@pytest.mark.parametrize(("encoding", "raw"), [("gzip", b"hello"), ("deflate", b"\x78\x9cnonsense"), ("br", b"")])
def test_what_is_not_packed_as_it_says_is_refused(encoding: str, raw: bytes) -> None:
    """Also an encoding that was not asked for."""
    with pytest.raises(NotPacked):
        Unpacker(encoding, 1_000).feed(raw)


def test_what_is_cut_is_refused() -> None:
    """A half of a page is none."""
    unpacker = Unpacker("gzip", 1_000_000)
    unpacker.feed(gzip.compress(b"hello" * 1_000)[:-12])
    with pytest.raises(NotPacked):
        unpacker.finish()
