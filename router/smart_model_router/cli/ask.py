"""`smr ask` and `smr chat`: prompts through the router, the answers to stdout as they come."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, tell
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import AllTargetsFailed, ModelNotFound, SmartRouterError
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import RequestOptions
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires import text_of, text_of_answer

if TYPE_CHECKING:
    from smart_model_router.cli.app import Ask, Chat


@dataclass(frozen=True, slots=True)
class Used:
    """A configuration, the model to ask, and the tier when this process chooses it (a gateway is told by a header)."""

    config: RouterConfig
    model: str
    tier: str | None


def as_the_gateway_said(error: SmartRouterError, url: str | None) -> SmartRouterError:
    """The error in a gateway's own words where it does not know the model: here it is a provider without one."""
    report = error.report
    if url is None or report is None or not isinstance(error, AllTargetsFailed) or not report.attempts:
        return error
    last = report.attempts[-1]
    if last.failure_class is not FailureClass.MODEL_GONE:
        return error
    return ModelNotFound(last.message, report=report)


def used_for(url: str | None, *, config: Path | None, model: str | None, tier: str | None) -> Used:
    """Return configuration, model and tier. Raises ConfigurationError, and RouterUnavailable without a gateway."""
    if url is None:
        found = configured(config)
        return Used(found.config, found.default_model if model is None else model, tier)
    from smart_model_router.cli.gateway_client import through_gateway  # noqa: PLC0415 - brings an HTTP client

    made = through_gateway(url, config=config, model=model, tier=tier)
    return Used(made, next(iter(made.models)), None)


def run_ask(asked: Ask) -> int:
    """Ask and print; the exit code. Raises SmartRouterError."""
    return asyncio.run(_run(asked))


async def _run(asked: Ask) -> int:
    used = used_for(asked.url, config=asked.config, model=asked.model, tier=asked.tier)
    body = {"model": used.model, "messages": [{"role": "user", "content": asked.prompt}]}
    options: RequestOptions = {"tier": used.tier, "timeout": asked.timeout, "accept_restart": False}
    async with SmartModelRouter.from_config(used.config) as router:
        try:
            if asked.as_json or not asked.stream:
                report = await _whole(router, body, options, as_json=asked.as_json)
            else:
                report = await _streamed(router, body, options)
        except SmartRouterError as error:
            if asked.explain and error.report is not None:
                _explain(error.report)
            said = as_the_gateway_said(error, asked.url)
            if said is error:
                raise
            raise said from error
    if asked.explain:
        _explain(report)
    return ExitCode.DEGRADED if asked.fail_on_degraded and report.degraded else ExitCode.OK


async def _whole(
    router: SmartModelRouter, body: Mapping[str, Any], options: RequestOptions, *, as_json: bool
) -> RouteReport:
    reply = await router.chat(body, **options)
    text = text_of_answer(reply.body)
    if as_json:
        print_json({"text": text, "body": reply.body, "report": reply.report.to_dict()})
    else:
        print_answer(text if text.endswith("\n") else text + "\n")
    return reply.report


async def _streamed(router: SmartModelRouter, body: Mapping[str, Any], options: RequestOptions) -> RouteReport:
    async with router.stream_chat(body, **options) as stream:
        try:
            async for chunk in stream:
                print_answer(text_of("chat", chunk))
        finally:
            if stream.text and not stream.text.endswith("\n"):
                print_answer("\n")
        return stream.report


def _explain(report: RouteReport) -> None:
    for line in report.lines():
        print_line(line)


# `smr chat`: a conversation. At a terminal it prompts; from a pipe each line is a question.
_PROMPT = "> "
_HELP = "/model NAME asks another one, /clear forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C ends an answer"


def run_chat(asked: Chat) -> int:
    """Converse until the input ends; the exit code is that of the first answer that failed. Raises SmartRouterError."""
    with asyncio.Runner() as runner:
        conversation = _Conversation(asked, runner)
        try:
            for line in _lines():
                if line.startswith("/"):
                    if not conversation.obey(*line.split(maxsplit=1)):
                        break
                elif line:
                    conversation.ask(line)
        finally:
            conversation.close()
        return conversation.code


def _lines() -> Iterator[str]:
    """Yield the lines that are typed or piped. Ctrl-C at the prompt drops the line, as in a shell."""
    at_terminal = sys.stdin.isatty()
    if not at_terminal:
        for raw in sys.stdin.buffer:
            yield raw.decode(errors="replace").strip()
        return
    with contextlib.suppress(ModuleNotFoundError):  # not on Windows
        importlib.import_module("readline")  # gives input() its editing and history
    print_line(_HELP)
    while True:
        try:
            if not sys.stdout.isatty():
                sys.stderr.write(_PROMPT)
                sys.stderr.flush()
            yield input(_PROMPT if sys.stdout.isatty() else "").strip()
        except KeyboardInterrupt:
            print_line("")
        except EOFError:
            print_line("")
            return


@dataclass(slots=True)
class _Conversation:
    """The messages so far, and the router. Between answers no loop runs: Ctrl-C belongs to the prompt there."""

    asked: Chat
    runner: asyncio.Runner
    code: int = ExitCode.OK
    model: str = ""
    router: SmartModelRouter = field(init=False)
    tier: str | None = None
    said: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._meet(self.asked)
        self._forget()

    def _meet(self, asked: Chat) -> None:
        used = used_for(asked.url, config=asked.config, model=asked.model, tier=asked.tier)
        used.config.resolve(used.model)
        router = SmartModelRouter.from_config(used.config)
        self.runner.run(router.__aenter__())
        self.router, self.model, self.tier, self.asked = router, used.model, used.tier, asked

    def _forget(self) -> None:
        self.said = [] if self.asked.system is None else [{"role": "system", "content": self.asked.system}]

    def close(self) -> None:
        """Close the router."""
        self.runner.run(self.router.aclose())

    def obey(self, command: str, argument: str = "") -> bool:
        """Do what a line with a slash says; False when it ends the conversation."""
        if command == "/model" and argument:
            self._switch(argument)
        elif command == "/model":
            print_line(f"model: {self.model}")
        elif command == "/clear":
            self._forget()
        elif command != "/exit":
            print_line(_HELP if command == "/help" else f"smr: {command} is unknown: {_HELP}")
        return command != "/exit"

    def _switch(self, model: str) -> None:
        before = self.router
        try:
            self._meet(self.asked.changed(model=model))
        except SmartRouterError as error:
            self._failed(error)
            return
        self.runner.run(before.aclose())
        print_line(f"model: {self.model}")

    def ask(self, question: str) -> None:
        """Ask, print the answer as it comes, and remember both; of an answer that was cut, what arrived."""
        self.said.append({"role": "user", "content": question})
        arrived: list[str] = []
        try:
            self.runner.run(self._answer(arrived))
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
        except SmartRouterError as error:
            self._failed(error)
        if text := "".join(arrived):
            self.said.append({"role": "assistant", "content": text})
        else:
            self.said.pop()

    async def _answer(self, arrived: list[str]) -> None:
        body = {"model": self.model, "messages": self.said}
        options: RequestOptions = {"tier": self.tier, "timeout": self.asked.timeout, "accept_restart": False}
        async with self.router.stream_chat(body, **options) as stream:
            try:
                async for chunk in stream:
                    text = text_of("chat", chunk)
                    arrived.append(text)
                    if not self.asked.as_json:
                        print_answer(text)
            finally:
                if not self.asked.as_json and stream.text and not stream.text.endswith("\n"):
                    print_answer("\n")
            report = stream.report
        if self.asked.as_json:
            print_json({"text": "".join(arrived), "report": report.to_dict()})
        if self.asked.explain:
            _explain(report)
        elif report.degraded:
            print_line(f"({report})")

    def _failed(self, error: SmartRouterError) -> None:
        code = tell(error, self.asked.as_json)
        self.code = self.code or code
