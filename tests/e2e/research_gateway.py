"""Gateways with research for tests: a corpus of countries, keys, and what a client asks of the routes."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import SECONDS, Served, becomes, fleet, served

TEAM = {"authorization": "Bearer team-key"}
OTHER = {"authorization": "Bearer other-key"}
ADMIN = {"authorization": "Bearer admin-key"}
KEYS = {
    "team": {"key": "team-key"},
    "other": {"key": "other-key"},
    "boss": {"key": "admin-key", "admin": True},
}
TOPIC = "What is the capital of Land 1?"
LONG = " ".join(f"What is the {what} of Land {n}?" for n in range(1, 5) for what in ("capital", "population", "area"))
"""Twelve questions."""
SILENT = [Fault.hang()]
"""The script of a model that takes each call and does not answer it."""
DISPUTED = "When was Port Alder founded? What is the population of Port Alder?"
TOWNS = {
    "one.md": "Port Alder was founded in 1871. The population of Port Alder is 12,400.\n",
    "two.md": "Port Alder was founded in 1874.\n",
}
"""A corpus whose answer to DISPUTED is withheld."""


def countries(folder: Path, count: int = 40) -> Path:
    """Write a corpus of so many countries, and its declaration; returns its folder."""
    folder.mkdir(parents=True)
    (folder / "corpus.yaml").write_text(
        "name: atlas\npublisher: Atlas\ntier: A\nprimary: true\nindependence: document\nas_of: 2026-06-01\n"
        "base_url: https://atlas.example.org\n",
        encoding="utf-8",
    )
    for n in range(1, count + 1):
        text = f"# Land {n}\n\nCapital: City {n}\n\nPopulation: {n},200,000\n\nArea: {n}0,500 sq km\n"
        (folder / f"land-{n}.md").write_text(text, encoding="utf-8")
    return folder


@dataclass
class ResearchGateway:
    """A running gateway with research, over a folder that has its corpus, its runs and its data.

    `model` serves the model `smart`, which runs ask that are told to; what it says helps no run, and harms none.
    """

    served: Served
    folder: Path
    model: FaultServer

    def ask(self, method: str, path: str, key: Mapping[str, str] = TEAM, **options: Any) -> httpx2.Response:
        """Return the answer of one request."""
        return httpx2.request(
            method,
            self.served.base_url + path,
            headers={**key, **options.pop("headers", {})},
            timeout=SECONDS,
            **options,
        )

    def begin(self, topic: str = TOPIC, key: Mapping[str, str] = TEAM, **inputs: Any) -> str:
        """Begin a run; returns its id."""
        answer = self.ask("POST", "/research", key, json={"topic": topic, "as_of": "2026-07-01", **inputs})
        assert answer.status_code == 202, answer.text
        run = answer.json()["run"]
        assert answer.headers["location"] == f"/research/{run}"
        return str(run)

    def begin_endless(self) -> str:
        """Begin a run that goes on as long as the model is SILENT, which it is from now on; returns its id."""
        self.model.set(SILENT)
        return self.begin(LONG, model="smart")

    def state(self, run: str, key: Mapping[str, str] = TEAM) -> str:
        """Return the state of a run."""
        return str(self.ask("GET", f"/research/{run}", key).json()["state"])

    def ended(self, run: str, key: Mapping[str, str] = TEAM) -> Mapping[str, Any]:
        """Wait for the end of a run; returns how it stands."""
        assert becomes(lambda: self.state(run, key) not in ("running", "interrupted"))
        found: Mapping[str, Any] = self.ask("GET", f"/research/{run}", key).json()
        return found

    def events(self, run: str, key: Mapping[str, str] = TEAM, after: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the events of one connection."""
        headers = {**key} if after is None else {**key, "last-event-id": str(after)}
        url = f"{self.served.base_url}/research/{run}/events"
        with httpx2.stream("GET", url, headers=headers, timeout=SECONDS) as answer:
            assert answer.status_code in (200, 204), answer.read()
            name = ""
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    name = line.removeprefix("id: ")
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    assert str(event["seq"]) == name
                    yield event

    @property
    def runs_folder(self) -> Path:
        """The folder of artefacts."""
        return self.folder / "data" / "research" / "runs"


@contextmanager
def research_gateway(
    folder: Path,
    *arguments: str,
    research: Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
    data: Path | None = None,
    **sections: Any,
) -> Generator[ResearchGateway]:
    """A gateway with research over the corpora `atlas` and `towns` in a folder, which may have been one before.

    Its data are in `data`, else in the folder.
    """
    corpus, towns = folder / "atlas", folder / "towns"
    if not corpus.exists():
        countries(corpus)
        towns.mkdir()
        for name, text in TOWNS.items():
            (towns / name).write_text(text, encoding="utf-8")
    section = {"gateway": True, "corpora": [str(corpus), str(towns)], **(research or {})}
    environ = {"SMART_ROUTER_DATA_DIR": str(data or folder / "data")}
    gateway = {"keys": KEYS if keys is None else keys, **sections.pop("gateway", {})}
    with (
        FaultServer() as model,
        served(
            fleet(model), folder, arguments=arguments, environ=environ, research=section, gateway=gateway, **sections
        ) as running,
    ):
        yield ResearchGateway(running, folder, model)
