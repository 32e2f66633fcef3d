"""`make agents` has no client here, but its lane judges: what a client says is held against what its provider saw."""

from __future__ import annotations

import sys

from tests.agents.coding import Agent
from tests.agents.programs import Program
from tests.agents.rows import table

ASKS = """
import os, openai
model = "gateway.messages.chat.whole"
with openai.OpenAI(base_url=os.environ["SMR_AGENTS_GATEWAY"] + "/v1", api_key="unused") as client:
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
print('{"model": "%s"}' % model)
"""


def program(code: str) -> Program:
    """A client of one task."""
    return Program("some client", "1", {"gateway": 1}, lambda: [sys.executable, "-c", code])


def test_a_client_that_does_its_task_passes() -> None:
    """It says so, it ends well, and the provider was asked once."""
    verdicts = list(program(ASKS).run())
    assert [verdict.wrong for verdict in verdicts] == [()]
    assert "| some client | 1 | gateway | 1 tasks |" in table(verdicts)


def test_a_task_that_the_provider_never_saw_is_wrong() -> None:
    """Whatever a client says of itself: without both calls and the tool's result at the provider it has failed."""
    (verdict,) = program('print(\'{"model": "gateway.chat.chat.tools"}\')').run()
    assert verdict.wrong == (
        "gateway.chat.chat.tools: 0 calls in place of 2",
        "gateway.chat.chat.tools: the tool's result did not reach the provider",
    )


def test_a_coding_agent_that_does_nothing_is_wrong() -> None:
    """The file, the last word, the provider's book and what was read are all looked for."""
    idle = Agent(
        client="idle",
        package="@openai/codex",
        dialects=("chat",),
        read=lambda work: [{"name": "read"}],
        write=lambda work: [{"name": "write"}],
        prepare=lambda home, base_url, model, dialect: ([sys.executable, "-c", ""], {}),
    )
    (verdict,) = idle.run()
    assert [wrong.split(":")[0] for wrong in verdict.wrong] == [
        "it never said its last word",
        "out.txt holds None",
        "the provider's book",
        "the provider never saw 'the number is 7321'",
    ]
