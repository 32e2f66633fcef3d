"""Rows of the table of mistakes: keys, names and addresses that a provider, or the way to it, refuses; the gateway."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import anthropic
import httpx2
import openai

from smart_model_router_providers.fault import Fault
from tests.certificates import loopback_pem, serving_loopback
from tests.e2e.gateways import MESSAGES
from tests.e2e.mistakes import PROMPT, UNSET, Bench, Mistake

Act = Callable[[Bench], str]
CLIENT_KEY, ADMIN_KEY = "client-key-of-the-gateway", "admin-key-of-the-gateway"


def error(status: int, code: str, message: str, **headers: str) -> Fault:
    """An error as OpenAI words it."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Fault.status(status, {name.replace("_", "-"): value for name, value in headers.items()}, body=body)


def answered(fault: Fault, provider: Mapping[str, Any] | None = None, environ: str = "sk-test") -> Act:
    """Ask a provider that answers so."""

    def act(bench: Bench) -> str:
        bench.server.set([fault])
        bench.environ["OPENAI_API_KEY"] = environ
        return bench.asked(provider)

    return act


WRONG_KEY = error(401, "invalid_api_key", "Incorrect API key provided: sk-te**st.")
GONE = error(404, "model_not_found", "The model `gpt-55` does not exist or you do not have access to it.")
FORBIDDEN = error(403, "model_not_found", "Project `proj_1` does not have access to model `gpt-5`")
NOT_ALLOWED = error(403, "", "Your organization must be verified to use this.")
SLOW_DOWN = error(429, "rate_limit_exceeded", "Rate limit reached for gpt-5: Limit 3 RPM.", retry_after="20")
USED_UP = error(429, "insufficient_quota", "You exceeded your current quota.")
TOO_LONG = error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")
FILTERED = error(400, "content_filter", "The response was filtered.")
WRONG_PATH = Fault.status(404, {"content-type": "text/html"}, body="<html><h1>404 Not Found</h1></html>")


def without_a_key(bench: Bench) -> str:
    """No variable, and no key in the file."""
    bench.server.set([error(401, "", "You didn't provide an API key.")])
    bench.environ["OPENAI_API_KEY"] = UNSET
    return bench.asked({"api_key": []})


@contextmanager
def listening(answer: bytes, tls: ssl.SSLContext | None = None) -> Generator[int]:
    """The port of a server on this machine that gives this answer to whatever comes, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                wire, _ = listener.accept()
                with suppress(OSError), wire:
                    shown = wire if tls is None else tls.wrap_socket(wire, server_side=True)
                    shown.recv(65_536)
                    shown.sendall(answer)
                    shown.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def plain_server_by_https(bench: Bench) -> str:
    """`https` for a server without TLS."""
    with listening(REFUSED) as port:
        return bench.asked({"base_url": f"https://127.0.0.1:{port}/v1"})


def tls_server_by_http(bench: Bench) -> str:
    """`http` for a server with TLS, which a web server answers in plain text."""
    page = b"<html><h1>The plain HTTP request was sent to HTTPS port</h1></html>"
    head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: "
    with listening(head + str(len(page)).encode() + b"\r\n\r\n" + page) as port:
        return bench.asked({"base_url": f"http://127.0.0.1:{port}/v1"})


def shown_certificate(name: str, *, trusted: bool) -> Act:
    """A provider with this certificate; `trusted`: by $SSL_CERT_FILE."""

    def act(bench: Bench) -> str:
        if trusted:
            bench.environ["SSL_CERT_FILE"] = str(bench.write(loopback_pem(name), "authority.pem"))
        with listening(REFUSED, serving_loopback(bench.folder, name)) as port:
            bench.write(bench.tree({"base_url": f"https://127.0.0.1:{port}/v1"}))
            return bench.program("ask", "--timeout", "1.5", PROMPT)

    return act


def by_proxy(bench: Bench) -> str:
    """The variable names a proxy that is not there."""
    bench.environ["HTTP_PROXY"] = bench.environ["http_proxy"] = "http://127.0.0.1:9"
    return bench.asked({"base_url": "http://models.example/v1"})


def checked_address(path: str) -> Act:
    """Check a base URL with this path."""

    def act(bench: Bench) -> str:
        bench.write(bench.tree({"base_url": f"https://api.openai.com{path}"}))
        return bench.smr("config", "check")

    return act


def asked_at(base_url: str) -> Act:
    """Ask a provider at this address."""
    return lambda bench: bench.asked({"base_url": base_url})


LITERAL = {"api_key": "$OPENAI_API_KEY"}

PROVIDER = (
    Mistake(
        "has a wrong key",
        answered(WRONG_KEY),
        r"openai refused the key \(401 invalid_api_key\)",
        r"check \$OPENAI_API_KEY",
    ),
    Mistake(
        "takes the key of another provider",
        answered(WRONG_KEY, environ="sk-ant-1"),
        "refused the key",
        r"check \$OPENAI_API_KEY",
    ),
    Mistake(
        "keeps quotes of .env",
        answered(WRONG_KEY, environ='"sk-test"'),
        "refused the key",
        r"check \$OPENAI_API_KEY.*quot",
    ),
    Mistake(
        "writes the key into the file",
        answered(WRONG_KEY, {"api_key": "sk-file"}),
        "refused the key",
        r"check providers\.openai\.api_key",
    ),
    Mistake("writes $VAR", answered(WRONG_KEY, LITERAL), "it is the text", r'"\$\{OPENAI_API_KEY\}" is'),
    Mistake("has no key", without_a_key, "no key is set", r"set \$OPENAI_API_KEY or providers\.openai\.api_key"),
    Mistake(
        "misspells the model of a provider", answered(GONE), "has no such model for this key", "check the name 'gpt-5'"
    ),
    Mistake(
        "takes the model of another provider",
        answered(GONE),
        "404 model_not_found",
        r"that \$OPENAI_API_KEY may use it",
    ),
    Mistake(
        "has no access to a model", answered(FORBIDDEN), "403 model_not_found", r"that \$OPENAI_API_KEY may use it"
    ),
    Mistake(
        "is not allowed something", answered(NOT_ALLOWED), "does not allow this", r"let \$OPENAI_API_KEY use 'gpt-5'"
    ),
    Mistake(
        "asks too often",
        answered(SLOW_DOWN),
        r"rate limited \(429 rate_limit_exceeded\) until",
        r"another try in (19|20)",
    ),
    Mistake(
        "has used up its credit",
        answered(USED_UP),
        "quota is used up",
        r"add credit to the account of \$OPENAI_API_KEY",
    ),
    Mistake("asks too long a question", answered(TOO_LONG), "the prompt is too long", "shorten it, or add a target"),
    Mistake("meets a content filter", answered(FILTERED), "blocked it by its content filter", "change the prompt"),
    Mistake(
        "takes an address with a wrong path",
        answered(WRONG_PATH),
        "does not know this path",
        r"check providers\.openai\.base_url",
    ),
    Mistake(
        "gets a web page",
        answered(Fault.html()),
        "sent a web page in the place",
        r"path of providers\.openai\.base_url",
    ),
    Mistake("writes /v1 twice", checked_address("/v1/v1"), "it ends in /v1/v1", "let it end in /v1"),
    Mistake(
        "writes the whole path",
        checked_address("/v1/chat/completions"),
        "it ends in /chat/completions",
        "let it end in /v1",
    ),
    Mistake(
        "asks a port where nothing listens",
        asked_at("http://127.0.0.1:9/v1"),
        "connection was refused",
        r"listens at providers\.openai\.base_url",
    ),
    Mistake(
        "misspells the host",
        asked_at("https://api.opnai.invalid/v1"),
        "was not resolved",
        r"check the host name in providers\.openai\.base_url",
    ),
    Mistake("writes https for http", plain_server_by_https, "no TLS connection", "is to begin with http://"),
    Mistake("writes http for https", tls_server_by_http, "400", "check http, https and path"),
    Mistake(
        "meets a certificate of no authority",
        shown_certificate("loopback", trusted=False),
        "self.signed",
        r"\$SSL_CERT_FILE has its authority",
    ),
    Mistake(
        "meets an expired certificate",
        shown_certificate("expired", trusted=True),
        "has expired",
        "renew the server's certificate",
    ),
    Mistake(
        "meets the certificate of another host",
        shown_certificate("elsewhere", trusted=True),
        "mismatch|not valid for",
        "check the host name",
    ),
    Mistake(
        "has a clock that is wrong",
        shown_certificate("future", trusted=True),
        "not yet valid",
        "check the clock of this machine",
    ),
    Mistake(
        "is sent through a proxy that is gone",
        by_proxy,
        "cannot be reached",
        r"\$http_proxy: check that proxy, or name the host in \$NO_PROXY",
    ),
)


def posted(path: str, body: Mapping[str, Any] | None = None, key: str | None = CLIENT_KEY, method: str = "POST") -> Act:
    """Send a request to the gateway; the message of its error."""

    def act(bench: Bench) -> str:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        sent = {"model": "smart", "messages": MESSAGES} if body is None else body
        answer = httpx2.request(method, f"{bench.gateway.base_url}{path}", json=sent, headers=headers)
        told = answer.json()
        return f"{answer.status_code} {told['error']['message'] if 'error' in told else told}"

    return act


def by_openai(path: str, model: str = "smart", key: str = CLIENT_KEY) -> Act:
    """Ask the gateway by OpenAI's SDK with this base URL."""

    def act(bench: Bench) -> str:
        with openai.OpenAI(base_url=f"{bench.gateway.base_url}{path}", api_key=key, max_retries=0) as client:
            try:
                return str(client.chat.completions.create(model=model, messages=MESSAGES).choices[0].message.content)
            except openai.APIError as told:
                return str(told)

    return act


def by_anthropic(path: str) -> Act:
    """Ask the gateway by Anthropic's SDK with this base URL."""

    def act(bench: Bench) -> str:
        with anthropic.Anthropic(
            base_url=f"{bench.gateway.base_url}{path}", api_key=CLIENT_KEY, max_retries=0
        ) as client:
            try:
                return str(client.messages.create(model="smart", max_tokens=9, messages=MESSAGES).content)
            except anthropic.APIError as told:
                return str(told)

    return act


def asked_through(bench: Bench) -> str:
    """Ask through the gateway with a wrong key."""
    bench.write(bench.tree())
    bench.environ["SMART_ROUTER_GATEWAY_KEY"] = "wrong"
    return bench.smr("ask", "--url", bench.gateway.base_url, PROMPT)


GATEWAY = (
    Mistake("shows the gateway no key", posted("/v1/chat/completions", key=None), "401", "[Aa]uthorization|x-api-key"),
    Mistake(
        "shows the gateway a wrong key", posted("/v1/chat/completions", key="sk-wrong"), "401.*key", "gateway.keys"
    ),
    Mistake("shows it a wrong key by the SDK", by_openai("/v1", key="sk-wrong"), "401", "gateway.keys"),
    Mistake("shows it a wrong key by smr", asked_through, "key", r"\$SMART_ROUTER_GATEWAY_KEY"),
    Mistake("asks the gateway at a wrong path", posted("/v1/chat/completion"), "404", "/v1/chat/completions"),
    Mistake("gives the SDK /v1 twice", by_openai("/v1/v1"), "404", "/v1/chat/completions"),
    Mistake("gives the SDK no /v1, which is right as well", by_openai(""), "echo of the last", "hello"),
    Mistake("gives Anthropic's SDK /v1", by_anthropic("/v1"), "404", "/v1/messages"),
    Mistake("asks by GET", posted("/v1/chat/completions", method="GET"), "405", "POST"),
    Mistake(
        "sends Messages to Chat",
        posted("/v1/chat/completions", {"model": "smart", "prompt": "hi"}),
        "400.*messages",
        "list",
    ),
    Mistake("sends Chat to Messages, which is taken", posted("/v1/messages"), "200", "hello"),
    Mistake(
        "sends Responses to Chat", posted("/v1/chat/completions", {"model": "smart", "input": "hi"}), "400", "messages"
    ),
    Mistake(
        "misspells a model at the gateway",
        by_openai("/v1", "smrt", ADMIN_KEY),
        "'smrt' is unknown",
        "did you mean 'smart'",
    ),
    Mistake("asks for a model that the key may not use", by_openai("/v1", "other"), "403.*may not use", "'other'"),
    Mistake("sends no JSON object", posted("/v1/chat/completions", {}), "400", "model"),
)
