"""The part of the fleet that a key may see."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.gateway.router_generation import Visible
from smart_model_router.observability.registry import Sample

CONFIG = RouterConfig.from_mapping(
    {
        "version": 1,
        "providers": {name: {"kind": "scripted"} for name in ("own", "both", "theirs", "wild")},
        "models": {
            "ours": {"tiers": [{"targets": ["own/a", "both/a"]}], "last_resort": ["own/last"]},
            "secret": {"tiers": [{"targets": ["both/b", "theirs/b"]}], "last_resort": []},
            "team/*": {"tiers": [{"targets": ["wild/*"]}], "last_resort": []},
        },
        "aliases": {"fast": "secret", "gpt-*": "secret"},
    }
)
EVERY = ["own/a", "own/last", "both/a", "both/a#2", "both/b", "theirs/b", "wild/x", "wild/y"]


def seen(*patterns: str) -> Visible:
    """The part that a key of these models may see."""
    return Visible(CONFIG, lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


@pytest.mark.parametrize(
    ("patterns", "targets"),
    [
        (["ours"], {"own/a", "own/last", "both/a", "both/a#2"}),
        (["fast"], {"both/b", "theirs/b"}),
        (["gpt-*"], {"both/b", "theirs/b"}),
        (["team/x"], {"wild/x"}),
        (["team/*"], {"wild/x", "wild/y"}),
        (["nothing"], set()),
        (["*"], set(EVERY)),
    ],
)
def test_the_targets_of_its_models_and_no_others(patterns: list[str], targets: set[str]) -> None:
    """Through aliases and wildcards, of every credential."""
    assert {target for target in EVERY if seen(*patterns).target(target)} == targets


def test_figures_and_samples_of_others_are_left_out() -> None:
    """A provider's figures are shown where all of its targets may be seen: they would tell of the others."""
    told: dict[str, Any] = {
        "scope": "process",
        "targets": {"own/a": {}, "both/b": {}},
        "models": {"ours": {}, "secret": {}},
        "providers": {name: {"calls": 1} for name in ("own", "both", "theirs")},
        "isolated": ["theirs/b"],
    }
    one = {"scope": "process", "targets": {"own/a": {}}, "models": {"ours": {}}, "providers": {"own": {"calls": 1}}}
    assert seen("ours").figures(told) == one
    labels: list[tuple[tuple[str, str], ...]] = [
        (("target", "own/a"),),
        (("target", "own"),),
        (("target", "own/a"), ("kind", "prompt")),
        (("target", "both/b"),),
        (("model", "secret"),),
        (("provider", "both"),),
        (),
    ]
    samples = [Sample("x", label, 1.0) for label in labels]
    assert [sample.labels for sample in seen("ours").samples(samples)] == labels[:3]


def test_an_admin_sees_everything() -> None:
    """Also why a part of the gateway is not well, which for others is a word."""
    admin = Visible(CONFIG, bool, everything=True)
    assert admin.samples([Sample("x", (), 1.0)])
    assert admin.figures({"isolated": 1}) == {"isolated": 1}
    assert admin.state("/secret/path is full") == "/secret/path is full"
    assert "/secret" not in seen("ours").state("/secret/path is full")
    assert seen("ours").state("") == admin.state(None) == "ok"


def test_a_route_is_seen_by_the_keys_that_may_use_it() -> None:
    """Its providers on its paths, of every credential; a provider's own figures only where nothing is hidden."""
    config = RouterConfig.from_mapping(
        {
            "version": 1,
            "providers": {name: {"kind": "openai", "api_key": "k"} for name in ("chat", "voice")},
            "models": {"ours": {"targets": ["chat/a"], "last_resort": []}},
            "gateway": {
                "passthrough": {"routes": {"/v1/audio/*": ["voice", "chat/tts"], "/v1/audio/speech": ["chat"]}}
            },
        }
    )
    every = ["chat/a", "voice/v1/audio/translations#2", "chat/tts/v1/audio/*", "chat/v1/audio/speech"]

    def told(*patterns: str) -> tuple[set[str], bool]:
        may_use = Visible(config, lambda name: name in patterns)
        return {target for target in every if may_use.target(target)}, may_use.provider("chat")

    assert told("ours") == ({"chat/a"}, False)
    assert told("/v1/audio/*") == ({every[1], every[2]}, False)
    assert told("/v1/audio/speech") == ({every[3]}, False)
    assert told("ours", "/v1/audio/*", "/v1/audio/speech") == (set(every), True)
