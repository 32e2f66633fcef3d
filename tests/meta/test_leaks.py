"""Nothing private is in the repository: no key, no machine's path, no host of a package registry."""

from __future__ import annotations

import pytest

from tests.meta.repository import relative
from tools.leaks import files, leaks_in

# Put together here, so that this file holds none of them.
PLANTED = {
    "an OpenAI key": "sk-" + "a1B2" * 8,
    "an Anthropic key": "sk-" + "ant-api03-" + "x" * 24,
    "a Google key": "AI" + "za" + "b" * 35,
    "a GitHub token": "gh" + "p_" + "c" * 36,
    "a private key": "-----BEGIN RSA PRIVATE " + "KEY-----",
    "a home folder": "/ho" + "me/someone/src",
    "root's folder": "/ro" + "ot/.cache",
    "a scratch folder": "/tm" + "p/abc/def",
    "the index of Python packages": "https://py" + "pi.org/simple",
    "the files of Python packages": "https://files.python" + "hosted.org/packages/x",
    "the npm registry": "https://registry.np" + "mjs.org/pyright",
}


def test_a_file_holds_nothing_private() -> None:
    """No file that could be committed holds a key, a machine's path or a registry's host."""
    texts = {relative(path): path.read_bytes().decode("utf-8", errors="replace") for path in files()}
    assert {name: found for name, text in texts.items() if (found := list(leaks_in(text)))} == {}


@pytest.mark.parametrize("line", PLANTED.values(), ids=PLANTED.keys())
def test_what_is_private_is_recognised(line: str) -> None:
    """The check finds each kind of leak when one is there."""
    assert len(list(leaks_in(f"first\nurl = '{line}'\n"))) == 1


@pytest.mark.parametrize(
    "line", ["api_key: k", "http://127.0.0.1:9001/v1", "cd ./tmp/x", "https://example.com/home/someone/x"]
)
def test_what_is_public_is_left_alone(line: str) -> None:
    """The check does not cry at what documents and tests must be able to say."""
    assert list(leaks_in(line)) == []
