"""`smr index`, `smr query` and `smr evaluate`: retrieval over one's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.ending import finish
from smart_model_router.cli.options import Config, Index, Json, Prompt

commands = typer.Typer()


@commands.command()
def index(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Markdown, text and HTML in it are read.")],
    db: Index = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Index a folder for smr query; again, only what changed is read."""

    def command() -> int:
        from smart_model_router.cli.indexing import run  # noqa: PLC0415 - only the command that runs pays

        return run(folder, db=db, config=config, as_json=as_json)

    finish(command, as_json=as_json)


@commands.command()
def query(
    question: Prompt,
    db: Index = None,
    config: Config = None,
    top_n: Annotated[int, typer.Option("--top-n", "-n", min=1, max=100, help="How many results.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Have a model answer from what is found.")] = False,
    as_json: Json = False,
) -> None:
    """Search an index; each result says how sure it is."""

    def command() -> int:
        from smart_model_router.cli.querying import Query, run  # noqa: PLC0415 - as above

        return run(Query(question, db=db, config=config, top_n=top_n, explain=explain, answer=answer, as_json=as_json))

    finish(command, as_json=as_json)


@commands.command()
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Rankings as TREC has them: query Q0 id rank score tag.")],
    qrels: Annotated[Path, typer.Argument(metavar="QRELS", help="Judgements as TREC has them: query 0 id grade.")],
    ab: Annotated[
        Path | None, typer.Option("--ab", metavar="RUN", help="Another run (B): is it better than the first (A)?")
    ] = None,
    keep: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the figures to this Markdown file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Repeats the chance in intervals and tests.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure rankings against judgements; --ab compares two of them."""

    def command() -> int:
        from smart_model_router.cli.evaluating import run as judge  # noqa: PLC0415 - as above

        return judge(run, qrels, ab=ab, keep=keep, seed=seed, as_json=as_json)

    finish(command, as_json=as_json)
