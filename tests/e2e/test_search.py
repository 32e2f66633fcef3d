"""`smr index`, `smr query` and `POST /query_documents`, as a person and a client meet them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_scoring.retrieval import HashedEmbedder, Passage, QueryOrchestrator, index_folder
from smart_model_router_scoring.retrieval.http import create_app
from tests.e2e.command import Smr, one_line
from tests.e2e.gateways import Served, fleet, served
from tests.pdf_files import encrypted, pdf
from tests.unit.scoring.retrieval.folders import NOW, write

QUESTION = "How long may a queued request wait?"
BEST = "how/waiting.md#L5-L7"


@pytest.fixture
def smr(tmp_path: Path) -> Smr:
    """The installed command beside a folder `docs` of four documents."""
    from tests.unit.scoring.retrieval.folders import DOCUMENTS

    write(tmp_path / "docs", DOCUMENTS)
    return Smr(tmp_path)


def test_a_folder_is_indexed_and_asked(smr: Smr) -> None:
    """Without configuration or key: where the index is on stdout, then a table with score, word and place."""
    done = smr("index", "docs")
    assert (done.returncode, done.stdout) == (0, f"{smr.folder / 'data' / 'search.sqlite'}\n")
    assert "4 added, 0 changed, 0 removed, 0 unchanged" in done.stderr
    found = smr("query", QUESTION)
    assert (found.returncode, found.stderr.count("\n")) == (0, 1)
    first = found.stdout.splitlines()[2]
    assert BEST in first
    assert "excellent" in first
    assert "Waiting > How long" in first


def test_explain_says_why_in_words_and_in_numbers(smr: Smr) -> None:
    """Rank and relevance in each strategy, then the computation down to its parts."""
    smr("index", "docs", "--db", "i.db")
    told = smr("query", QUESTION, "--db", "i.db", "--explain").stdout
    assert "keyword: rank 1, it has " in told
    assert "vector: rank 2, cosine 0.4" in told
    assert "keyword: not found" in told
    assert "reciprocal ranks = " in told
    assert "attainable = " in told


def test_json_is_one_object_in_every_case(smr: Smr) -> None:
    """Results with their passages; the report of indexing; an error."""
    report = json.loads(smr("index", "docs", "--json").stdout)
    assert (report["added"], report["chunks"], report["embedded"]) == (4, 5, 5)
    told = json.loads(smr("query", QUESTION, "--json", "--explain").stdout)
    assert told["results"][0] == [BEST, pytest.approx(told["explanations"][0]["score"])]
    assert (told["passages"][0]["chunk_id"], told["degraded"]) == (BEST, {})
    error = json.loads(smr("query", "x", "--db", "none.db", "--json").stdout)
    assert "smr index DIR" in error["error"]["message"]


def test_the_lines_of_a_result_are_shown_from_its_document(smr: Smr) -> None:
    """`--show`: the lines of the passage, marked, with lines around them; as JSON whole documents with line offsets."""
    smr("index", "docs", "--db", "i.db")
    (smr.folder / "docs" / "how" / "waiting.md").unlink()  # the index has its own copy
    told = smr("query", QUESTION, "--db", "i.db", "--show", "--top-n", "1").stdout
    assert told.endswith(
        "\nhow/waiting.md#L5-L7\n      2\n      3 A queue of requests.\n      4\n>     5 ## How long\n>     6\n"
        ">     7 Until the deadline of the request.\n      8\n"
    )
    [document] = json.loads(smr("query", QUESTION, "--db", "i.db", "--show", "--json", "-n", "1").stdout)["documents"]
    start = document["line_offsets"][4]
    assert (document["path"], document["text"][start : start + 11]) == ("how/waiting.md", "## How long")
    assert document["chunks"][1] == {
        "chunk_id": BEST,
        "heading": "Waiting > How long",
        "first_line": 5,
        "last_line": 7,
    }


def test_files_of_every_kind_are_indexed_and_bad_ones_are_named(smr: Smr) -> None:
    """A word of Japanese and of Thai, a tag, a latin-1 file and a PDF's sentence are found; stderr has the others."""
    folder = smr.folder / "kinds"
    write(folder, {"ja.md": "# 旅\n\n今日は東京都へ行く。\n", "th.txt": "กรุงเทพมหานครเป็นเมืองหลวง\n"})
    write(folder, {"tag.md": "---\ntags: [woodwork]\n---\n\nPlanes.\n", "bad.md": "---\na: [\n---\n\nSaws.\n"})
    (folder / "latin.txt").write_bytes("La scie à métaux.\n".encode("latin-1"))
    (folder / "report.pdf").write_bytes(pdf("Beginning.", "The lathe turns table legs."))
    (folder / "locked.pdf").write_bytes(encrypted(pdf("Secret."), "word"))
    (folder / "huge.txt").touch()
    os.truncate(folder / "huge.txt", 50_000_000)
    done = smr("index", "kinds", "--db", "k.db")
    assert done.returncode == 0
    yaml = "expected the node content, but found '<stream end>'"
    assert done.stderr.splitlines()[1:] == [
        "left out: huge.txt: too large (50000000 bytes; at most 5000000)",
        "left out: locked.pdf: pdf (it is encrypted)",
        f"bad.md: front matter (read as text: it is no YAML: {yaml}, line 2 of the file)",
        "latin.txt: charset (read as windows-1252, by its letters)",
    ]
    places = {
        "東京": "ja.md",
        "กรุงเทพ": "th.txt",
        "woodwork": "tag.md",
        "métaux": "latin.txt",
        "a lathe turns legs": "report.pdf#page=2",
    }
    for question, place in places.items():
        told = json.loads(smr("query", question, "--db", "k.db", "--json").stdout)
        assert told["results"][0][0].startswith(place)


def test_nothing_found_is_said_and_is_no_failure(smr: Smr) -> None:
    """Exit code 0 and the sentence; no model is asked, and none is needed."""
    smr("index", "docs")
    done = smr("query", "zebra crossings", "--answer")
    assert (done.returncode, done.stdout) == (0, "No relevant documents found.\n")
    assert "probably not found in these documents: the confidence has to be 0.30 or more" in done.stderr


def test_a_heavy_weight_of_hashed_vectors_is_told_in_one_line(smr: Smr) -> None:
    """Without a place in our source."""
    tree = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:1/v1"}},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}]}},
        "search": {"embedder": "hashed", "weights": {"vector": 0.5}},
    }
    (smr.folder / "smart-router.yaml").write_text(json.dumps(tree), encoding="utf-8")
    smr("index", "docs")
    told = [line for line in smr("query", QUESTION).stderr.splitlines() if "hashed vectors rank worse" in line]
    assert len(told) == 1
    assert told[0].startswith("smr: weights.vector 0.5: ")


def test_an_index_of_an_older_version_is_made_anew_and_says_so(smr: Smr) -> None:
    """A search names the command; the command replaces the index, and nothing was left out."""
    smr("index", "docs", "--db", "i.db")
    with closing(sqlite3.connect(smr.folder / "i.db")) as sql:
        sql.execute("UPDATE about SET value = '1/15.0.0' WHERE key = 'format'")
        sql.commit()
    assert smr("query", QUESTION, "--db", "i.db").returncode == 3
    done = smr("index", "docs", "--db", "i.db")
    assert (done.returncode, "left out" in done.stderr) == (0, False)
    assert "older format (made anew: it was of format 1/15.0.0" in done.stderr
    assert BEST in smr("query", QUESTION, "--db", "i.db").stdout


def test_mistakes_have_their_exit_codes(smr: Smr) -> None:
    """3 without an index and for the index of another folder, 1 for no folder, 2 for usage; always one line."""
    missing = smr("query", "x")
    assert (missing.returncode, one_line(missing.stderr), "smr index DIR" in missing.stderr) == (3, True, True)
    smr("index", "docs")
    foreign = smr("index", "docs/how")
    assert (foreign.returncode, one_line(foreign.stderr), "another file" in foreign.stderr) == (3, True, True)
    nowhere = smr("index", "nowhere")
    assert (nowhere.returncode, one_line(nowhere.stderr)) == (1, True)
    assert smr("query", "x", "--top-n", "0").returncode == 2
    assert smr("query", " ").returncode == 2


def test_an_answer_is_written_by_the_configured_model(smr: Smr, server: FaultServer) -> None:
    """`--answer` sends the passages and the question to a model, and prints what it says below the table."""
    smr.configure(server)
    smr("index", "docs")
    done = smr("query", QUESTION, "--answer")
    echo = next(line for line in done.stdout.splitlines() if line.startswith("fault-server: echo"))
    assert (done.returncode, "Passages, one a line" in echo, len(server.requests)) == (0, True, 1)
    assert '"source": "how/waiting.md#L5-L7"' in done.stdout


def test_what_was_found_is_shown_also_when_no_model_answers(smr: Smr, server: FaultServer) -> None:
    """The table is printed, then one line says what went wrong; exit code 4."""
    server.set([Fault.status(500)])
    smr.configure(server)
    smr("index", "docs")
    done = smr("query", QUESTION, "--answer")
    assert (done.returncode, BEST in done.stdout) == (4, True)
    assert one_line(done.stderr.splitlines(keepends=True)[-1])


PATIENT = dict.fromkeys(("keyword", "graph", "vector"), "60s")
"""Time limits for a busy machine."""


def test_vectors_may_come_from_a_model_behind_the_router(smr: Smr, server: FaultServer) -> None:
    """`search.embedding_model` embeds the folder and the question; when it is away, keywords answer and say so."""
    smr.configure(server)
    file = smr.folder / "smart-router.yaml"
    config = json.loads(file.read_text())
    file.write_text(
        json.dumps({**config, "search": {"index": "i.db", "embedding_model": "smart", "timeouts": PATIENT}})
    )
    assert smr("index", "docs").returncode == 0
    assert smr("query", QUESTION).stderr.count("\n") == 1
    server.set([Fault.status(400)])
    degraded = smr("query", QUESTION)
    assert (degraded.returncode, BEST in degraded.stdout) == (0, True)
    assert "without vector search" in degraded.stderr


@pytest.fixture
def gateway(tmp_path: Path, server: FaultServer) -> Iterator[Served]:
    """`smr serve` with an index; `reader` is a key that may ask `smart`, `other` one that may not."""
    from tests.unit.scoring.retrieval.folders import DOCUMENTS

    folder, db = write(tmp_path / "docs", DOCUMENTS), tmp_path / "i.db"
    asyncio.run(index_folder(folder, db, now=NOW, embedder=HashedEmbedder()))
    keys = {"reader": {"key": "k-reader", "models": ["smart"], "tpm": 100_000}, "other": {"key": "k", "models": ["x"]}}
    sections: dict[str, Any] = {"search": {"index": str(db)}, "gateway": {"keys": keys}, "routing": {"max_wait": "1s"}}
    with served(fleet(server), tmp_path, **sections) as running:
        yield running


def ask(gateway: Served, key: str = "k-reader", **body: Any) -> httpx2.Response:
    """POST /query_documents."""
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{gateway.base_url}/query_documents", json=body, headers=headers, timeout=30)


def test_the_gateway_answers_from_the_index(gateway: Served, server: FaultServer) -> None:
    """The founding response; the model got the passages; the headers say who wrote it."""
    told = ask(gateway, query=QUESTION, top_n=2)
    body = told.json()
    assert (told.status_code, body["results"][0][0]) == (200, BEST)
    assert body["answer"].startswith("fault-server: echo of the last user message: Passages, one a line")
    assert '"source": "how/waiting.md#L5-L7"' in body["answer"]
    assert (told.headers["x-router-provider"], len(server.requests)) == ("ao", 1)


def test_the_gateway_explains_when_asked(gateway: Served) -> None:
    """Objects beside the pairs."""
    told = ask(gateway, query=QUESTION, explain=True).json()
    assert told["explanations"][0]["ranks"]["keyword"] == 1


def test_the_gateway_asks_no_model_for_nothing(gateway: Served, server: FaultServer) -> None:
    """No hit is a 200 without results, and costs nothing."""
    told = ask(gateway, query="zebra crossings")
    assert (told.status_code, told.json()["answer"]) == (200, "No relevant documents found.")
    assert (told.json()["results"], server.requests) == ([], [])


def test_the_gateway_refuses_what_is_no_question(gateway: Served) -> None:
    """422 with the place; 401 and 403 by the key; 405 for a GET."""
    assert ask(gateway, query="", top_n=5).status_code == 422
    assert ask(gateway, query="x", top_n=101).json()["detail"][0]["loc"] == ["body", "top_n"]
    assert ask(gateway, "nobody", query=QUESTION).status_code == 401
    assert ask(gateway, query=QUESTION, key="k").status_code == 403
    assert httpx2.get(f"{gateway.base_url}/query_documents").status_code == 405


def test_a_dead_provider_is_told_as_everywhere_in_the_gateway(gateway: Served, server: FaultServer) -> None:
    """503 with a Retry-After; nothing stays in flight."""
    server.set([Fault.status(500)])
    told = ask(gateway, query=QUESTION)
    assert (told.status_code, told.json()["error"]["code"]) == (503, "all_targets_failed")
    assert float(told.headers["retry-after"]) > 0


def test_a_gateway_without_an_index_says_how_to_make_one(tmp_path: Path, server: FaultServer) -> None:
    """503, naming the key and the command."""
    with served(fleet(server), tmp_path) as running:
        told = httpx2.post(f"{running.base_url}/query_documents", json={"query": "x"})
    assert (told.status_code, "smr index" in told.json()["detail"]) == (503, True)


@pytest.mark.asyncio
async def test_the_endpoint_stands_alone(tmp_path: Path) -> None:
    """Any ASGI server and any function that writes answers: no router is needed."""
    from tests.unit.scoring.retrieval.folders import DOCUMENTS

    db = tmp_path / "i.db"
    await index_folder(write(tmp_path / "docs", DOCUMENTS), db, now=NOW)

    async def synthesise(asked: str, passages: Sequence[Passage]) -> str:
        return f"{asked} {passages[0].text.split()[-1]}"

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(QueryOrchestrator(db), synthesise), log_config=None, lifespan="off", ws="none")
    program = uvicorn.Server(config)
    running = asyncio.create_task(program.serve([listener]))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
        told = await client.post("/query_documents", json={"query": "statistics days"})
        large = await client.post("/query_documents", content=b" " * 70_000)
    program.should_exit = True
    await running
    listener.close()
    assert (told.status_code, told.json()["answer"]) == (200, "statistics days days.")
    assert large.status_code == 413
