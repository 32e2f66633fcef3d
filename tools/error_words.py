"""`make error-words`: the same twelve failures, in the words of this router, of OpenAI's SDK and of LiteLLM's router.

Each client asks a provider on this machine that fails in one way, with its shipped defaults and a time-out of five
seconds. docs/error-words.md gets what each of them raised, and after how long.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._environments import install

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from tests.certificates import serving_loopback
from tests.e2e.mistakes_at_providers import listening

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "error-words.md"
MARK = "<!-- what each of them says -->\n"
KEY = "sk-test-1234"
SECONDS = 5.0
SHOWN = 400
"""Characters of a message that the page shows."""
LITELLM = "litellm"


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A failure in words, and the provider that makes it: its base URL while it is open."""

    name: str
    provider: Callable[[], AbstractContextManager[str]]

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"{self.name[:1].upper()}{self.name[1:]}"


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> FailureCase:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return FailureCase(f"{status} {code}", _serving(Fault.status(status, headers, body=body)))


def _serving(fault: Fault) -> Callable[[], AbstractContextManager[str]]:
    @contextmanager
    def serve() -> Generator[str]:
        with FaultServer([fault]) as server:
            yield server.base_url

    return serve


@contextmanager
def _self_signed() -> Generator[str]:
    with TemporaryDirectory() as folder, listening(b"", serving_loopback(Path(folder))) as port:
        yield f"https://127.0.0.1:{port}/v1"


CASES = (
    _error(401, "invalid_api_key", "Incorrect API key provided: sk-te**34."),
    _error(403, "model_not_found", "Project `proj_1` does not have access to model `gpt-5`"),
    _error(404, "model_not_found", "The model `gpt-5` does not exist or you do not have access to it."),
    _error(429, "rate_limit_exceeded", "Rate limit reached for gpt-5: Limit 3 RPM.", {"retry-after": "20"}),
    _error(429, "insufficient_quota", "You exceeded your current quota."),
    _error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    _error(500, "server_error", "The server had an error while processing your request."),
    FailureCase("nothing listens", lambda: nullcontext("http://127.0.0.1:9/v1")),
    FailureCase("no such host", lambda: nullcontext("http://nowhere.invalid/v1")),
    FailureCase("a certificate that is not trusted", _self_signed),
    FailureCase("no answer in time", _serving(Fault.hang())),
    FailureCase("a web page", _serving(Fault.html())),
)

_OURS = """
import asyncio
from tools.error_words import ask_this_router
def call():
    asyncio.run(ask_this_router(URL))
"""
_SDK = """
import openai
def call():
    client = openai.OpenAI(base_url=URL, timeout=SECONDS)
    client.chat.completions.create(model="gpt-5", messages=MESSAGES)
"""
_LITELLM = """
import asyncio
import litellm
litellm.telemetry, litellm.suppress_debug_info = False, True
PARAMS = {"model": "openai/gpt-5", "api_base": URL, "api_key": os.environ["OPENAI_API_KEY"]}
def call():
    router = litellm.Router(model_list=[{"model_name": "smart", "litellm_params": PARAMS}], timeout=SECONDS)
    asyncio.run(router.acompletion(model="smart", messages=MESSAGES))
"""
_RUN = """
import json, os, sys, time
URL, SECONDS = sys.argv[1], float(sys.argv[2])
MESSAGES = [{"role": "user", "content": "How do bees find their way home?"}]
%s
started = time.monotonic()
try:
    call()
    told = "nothing: it answered"
except Exception as error:
    told = f"{type(error).__name__}: {error}"
print(json.dumps({"told": told, "seconds": time.monotonic() - started}))
"""
OURS = "smart-model-router"
CLIENTS = {OURS: _OURS, "OpenAI's SDK": _SDK, "LiteLLM's router": _LITELLM}


async def ask_this_router(url: str) -> None:
    """Ask a provider by way of a router with shipped defaults, which has its key from the environment."""
    tree = {
        "version": 1,
        "providers": {"openai": {"kind": "openai", "base_url": url, "api_key": "${OPENAI_API_KEY}"}},
        "models": {"smart": {"targets": ["openai/gpt-5"], "last_resort": []}},
    }
    async with SmartModelRouter.from_config(tree) as router:
        question = {"role": "user", "content": "How do bees find their way home?"}
        await router.chat({"model": "smart", "messages": [question]}, timeout=SECONDS)


def told_by(error: Exception) -> str:
    """Return an exception as the page shows it."""
    return plain(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Said:
    """The exception that a client raised, as text, and the seconds until then."""

    told: str
    seconds: float


def asked(client: str, url: str) -> Said:
    """Ask a provider by way of a client, in a process of its own."""
    python = install("litellm_router", LITELLM) if client == "LiteLLM's router" else Path(sys.executable)
    environ = {
        name: value for name, value in os.environ.items() if not name.lower().endswith(("_proxy", "_api_key"))
    } | {"OPENAI_API_KEY": KEY}
    command = [str(python), "-c", _RUN % CLIENTS[client], url, str(SECONDS)]
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return Said(plain(found["told"]), found["seconds"])


def plain(told: str) -> str:
    """Return a message as one line, without what differs from run to run."""
    line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9001", " ".join(told.split()))
    line = re.sub(r"\d\d:\d\d:\d\d", "12:03:20", line)
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ..."


def page() -> str:
    """Return the part of the page that says what each client said of each failure."""
    parts: list[str] = []
    for case in CASES:
        with case.provider() as url:
            said = {client: asked(client, url) for client in CLIENTS}
        rows = [f"{client}, after {each.seconds:.0f} s:\n  {each.told}" for client, each in said.items()]
        parts.append(f"### {case.title}\n\n```text\n" + "\n".join(rows) + "\n```\n")
        print(f"{case.name}: {', '.join(f'{each.seconds:.1f} s' for each in said.values())}", flush=True)
    return "\n".join(parts)


def main() -> int:
    """Write the page anew; the exit code."""
    before = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(f"{before}{MARK}\n{page()}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
