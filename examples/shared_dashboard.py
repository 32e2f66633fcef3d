"""One dashboard over several processes: each writes its statistics to one file, and the page shows all of them.

Runs two workers and `smr dashboard`, and prints what the page's feed says. In your set-up: `store: {path: stats.db}` in
the workers' configuration, and `smr dashboard --db stats.db` in a terminal, for as long as you like.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from smart_model_router import SmartModelRouter

SMR = shutil.which("smr", path=str(Path(sys.executable).parent)) or "smr"


async def work(store: str, questions: int) -> None:
    """Send `questions` requests, as one worker would."""
    config = {
        "version": 1,
        "providers": {"first": {"kind": "scripted"}},
        "models": {"smart": {"tiers": [{"targets": ["first/big"]}], "last_resort": []}},
        "store": {"path": store},
    }
    async with SmartModelRouter.from_config(config) as router:
        for number in range(questions):
            await router.chat({"model": "smart", "messages": [{"role": "user", "content": f"question {number}"}]})


def pictures(url: str) -> Iterator[dict[str, Any]]:
    """The pictures of the page's feed (Server-Sent Events), one a second."""
    with httpx2.stream("GET", f"{url}/stream") as feed:
        event = ""
        for line in feed.iter_lines():
            field, _, value = line.partition(": ")
            event = value if field == "event" else event
            if field == "data" and event == "snapshot":
                yield json.loads(value)


def main() -> None:
    """Two workers at the same time, then a look at the dashboard."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "stats.db")
        workers = [subprocess.Popen([sys.executable, __file__, store, str(questions)]) for questions in (3, 4)]
        print("workers ended with", [worker.wait() for worker in workers])
        command = [SMR, "dashboard", "--db", store, "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dashboard:
            try:
                url = json.loads(next(iter(dashboard.stdout or ())))["url"]
                print("open", url)
                picture = next(pictures(url))
                for target in picture["targets"]:
                    print(target["id"], target["state"], f"p95 {target['p95']:.3f} s")
                print("newest requests:", len(picture["requests"]), "of both workers")
            finally:
                dashboard.terminate()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(sys.argv[1], int(sys.argv[2])))
    else:
        main()
