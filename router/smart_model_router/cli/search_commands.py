"""`smr index`, `smr query` and `smr evaluate`: retrieval over one's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, command
from smart_model_router.cli.options import Config, Index, Json, Prompt

commands = typer.Typer()


@command(commands, "index")
class IndexFolder(Command):
    """Index a folder for smr query; later runs read only changed files."""

    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Markdown, text and HTML in it are read.")]
    db: Index = None
    config: Config = None
    as_json: Json = False

    def run(self) -> int:
        """See index.py."""
        from smart_model_router.cli.index import run  # noqa: PLC0415 - only the command that runs pays

        return run(self)


@command(commands, "query")
class Query(Command):
    """Search an index; each result has a confidence."""

    question: Prompt
    db: Index = None
    config: Config = None
    top_n: Annotated[int, typer.Option("--top-n", "-n", min=1, max=100, help="How many results.")] = 5
    explain: Annotated[bool, typer.Option("--explain", help="Explain how each score came about.")] = False
    answer: Annotated[bool, typer.Option("--answer", help="Have a model answer from the results.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See query.py."""
        from smart_model_router.cli.query import run  # noqa: PLC0415 - as above

        return run(self)


@command(commands, "evaluate")
class Evaluate(Command):
    """Measure rankings against judgements; --ab compares two of them."""

    ranking: Annotated[
        Path, typer.Argument(metavar="RUN", help="Rankings as TREC has them: query Q0 id rank score tag.")
    ]
    qrels: Annotated[Path, typer.Argument(metavar="QRELS", help="Judgements as TREC has them: query 0 id grade.")]
    ab: Annotated[
        Path | None, typer.Option("--ab", metavar="RUN", help="Another run (B): is it better than the first (A)?")
    ] = None
    keep: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the figures to this Markdown file.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Repeats the chance in intervals and tests.")] = 0
    as_json: Json = False

    def run(self) -> int:
        """See evaluate.py."""
        from smart_model_router.cli.evaluate import run  # noqa: PLC0415 - as above

        return run(self)
