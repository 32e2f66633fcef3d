"""`smr targets` against a running gateway: what is off is seen, and comes back when the operator says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr
from tests.e2e.gateways import MESSAGES, Served, fleet, served

ADMIN, PLAIN = "vk-admin-0123456789", "vk-plain-0123456789"
CHAT = json.dumps({"model": "smart", "messages": MESSAGES}).encode()


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def gateway(upstream: FaultServer, tmp_path: Path) -> Iterator[Served]:
    """A gateway with a key that may operate and one that may not."""
    keys = {"plain": {"key": PLAIN}, "ops": {"key": ADMIN, "admin": True}}
    with served(fleet(upstream), tmp_path, gateway={"keys": keys}) as running:
        yield running


def smr(gateway: Served, *arguments: str, key: str = ADMIN) -> subprocess.CompletedProcess[str]:
    """`smr targets` with a key in the environment: its configuration's own are not for another port than its own."""
    command = Smr(gateway.file.parent)
    command.environment["SMART_ROUTER_GATEWAY_KEY"] = key
    return command("targets", "--config", gateway.file, "--url", gateway.base_url, *arguments)


def listed(gateway: Served) -> dict[str, dict[str, Any]]:
    """The targets by id, as `--json` has them."""
    done = smr(gateway, "--json")
    assert done.returncode == 0, done.stderr
    return {target["id"]: target for target in json.loads(done.stdout)["targets"]}


def ask(gateway: Served) -> int:
    """The status of one question."""
    return gateway.post("/v1/chat/completions", CHAT, f"authorization: Bearer {PLAIN}")[0]


@pytest.mark.parametrize(
    ("status", "refusal", "because"), [(401, "off", "AUTH"), (403, "off", "AUTH"), (402, "wall", "QUOTA")]
)
def test_a_disabled_credential_is_seen_and_enabled(
    gateway: Served, upstream: FaultServer, status: int, refusal: str, because: str
) -> None:
    """After a 401, 403 or 402 the list says so and why; `enable` ends it, and the next question is answered."""
    upstream.set([Fault.status(status, times=1)])
    assert ask(gateway) == 503
    rest = listed(gateway)["ao/big"]
    assert (rest["refusal"], rest["because"]) == (refusal, because)
    assert rest["retry_after"] > 800
    assert upstream.calls() == 1

    done = smr(gateway, "enable", "ao/big")
    assert (done.returncode, "ready" in done.stdout) == (0, True)
    assert ask(gateway) == 200


def test_a_provider_s_name_stands_for_all_of_its_targets(gateway: Served) -> None:
    """What was isolated by the provider's name gets nothing until it is enabled."""
    assert smr(gateway, "isolate", "ao").returncode == 0
    assert {id_: target["state"] for id_, target in listed(gateway).items()} == {
        "ao/big": "isolated",
        "aa/big": "closed",
    }
    assert ask(gateway) == 503
    assert smr(gateway, "enable", "ao").returncode == 0
    assert ask(gateway) == 200


def test_a_word_has_its_speaker_its_reason_and_its_reach(gateway: Served) -> None:
    """Who said it, with which key, when and why stands in the list; without a store stderr says who obeys."""
    said = smr(gateway, "isolate", "ao", "--why", "it lies")
    assert (said.returncode, "(ops): it lies, 20" in said.stdout) == (0, True)
    assert "only the process that answered obeys: there is no shared state" in said.stderr
    word = listed(gateway)["ao/big"]["isolated"]
    assert (word["target"], word["why"], word["by"].endswith("(ops)")) == ("ao/big", "it lies", True)
    refused = smr(gateway, "enable", "ao", "--why", "x" * 300)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "why: at most 200 printable characters" in refused.stderr
    assert listed(gateway)["ao/big"]["state"] == "isolated"


def test_only_an_admin_s_key_operates(gateway: Served) -> None:
    """Every key may look; who may not act is told so, and nothing changes."""
    assert smr(gateway, "--json", key=PLAIN).returncode == 0
    refused = smr(gateway, "isolate", "ao", key=PLAIN)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "admin: true" in refused.stderr
    assert listed(gateway)["ao/big"]["state"] == "closed"
    assert smr(gateway, key="vk-nobody-0123456789").returncode == 3


def test_what_is_no_target_is_told_what_there_is(gateway: Served) -> None:
    """One line with the names there are; no traceback."""
    done = smr(gateway, "enable", "nobody")
    assert done.returncode == 3
    assert "there are ao/big, aa/big" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_gateway_it_says_where_it_looked(gateway: Served) -> None:
    """Exit code 4: nobody answers there."""
    done = smr(gateway, "--url", "http://127.0.0.1:9/v1")
    assert done.returncode == 4
    assert "no gateway answers at http://127.0.0.1:9 " in done.stderr
