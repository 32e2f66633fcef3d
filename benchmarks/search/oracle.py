"""`python -m benchmarks.search.oracle RUNS`: our metrics beside trec_eval's (pytrec-eval-terrier), equal to 1e-9.

RUNS is a folder of `*.run` and `*.qrels` that `benchmarks.search --runs` or `benchmarks.fusion_peers` wrote. Without it
random rankings are judged, with repeated grades, unjudged and irrelevant documents; `--write FILE` keeps trec_eval's
figures of those for the test of the metrics.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks._environments import install

from smart_model_router_scoring.evaluate import evaluate, parse_qrels, parse_run
from smart_model_router_scoring.evaluate.metrics import METRICS

PACKAGE = "pytrec-eval-terrier==0.5.11"
TOLERANCE = 1e-9
QUERIES = 40
TREC = """
import json, sys, pytrec_eval
asked = json.load(sys.stdin)
grades, run = asked["grades"], asked["run"]
def ranked(ids): return {key: float(len(ids) - at) for at, key in enumerate(ids)}
def judge(measures, depth):
    evaluator = pytrec_eval.RelevanceEvaluator(grades, measures)
    return evaluator.evaluate({query: ranked(ids[:depth]) for query, ids in run.items()})
whole, first = judge({"ndcg_cut_10", "recall_100"}, None), judge({"recip_rank"}, 10)
json.dump({query: {"ndcg@10": found["ndcg_cut_10"], "mrr@10": first[query]["recip_rank"],
                   "recall@100": found["recall_100"]} for query, found in whole.items()}, sys.stdout)
"""
Grades = Mapping[str, Mapping[str, float]]
Rankings = Mapping[str, Sequence[str]]


def trec_eval(run: Rankings, grades: Grades) -> dict[str, dict[str, float]]:
    """Query -> metric -> figure of trec_eval, in an environment of its own."""
    whole = {query: {key: int(grade) for key, grade in of.items()} for query, of in grades.items()}
    asked = json.dumps({"run": {query: list(ids) for query, ids in run.items() if ids}, "grades": whole})
    command = [str(install("trec", PACKAGE)), "-c", TREC]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def furthest(run: Rankings, grades: Grades) -> float:
    """The greatest difference between a figure of ours and trec_eval's. Queries without a result are none of its."""
    ours, theirs = evaluate(run, grades).per_query, trec_eval(run, grades)
    return max(
        abs(value - theirs[query][metric])
        for metric in METRICS
        for query, value in ours[metric].items()
        if query in theirs
    )


def random_rankings() -> tuple[dict[str, list[str]], dict[str, dict[str, float]]]:
    """Rankings and judgements, some of them of documents that are not ranked."""
    chance = random.Random(19)  # noqa: S311 - repeatable, not secret
    keys = [f"d{number}" for number in range(150)]
    run = {f"q{number}": chance.sample(keys, chance.randint(1, 130)) for number in range(QUERIES)}
    grades = {
        query: {key: float(chance.choice((0, 0, 1, 1, 2, 4))) for key in chance.sample(keys, chance.randint(1, 60))}
        for query in run
    }
    return run, grades


def main() -> int:
    """Compare; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.oracle")
    parser.add_argument("runs", nargs="?", type=Path)
    parser.add_argument("--write", type=Path)
    told = parser.parse_args()
    run, grades = random_rankings()
    worst = {"random rankings": furthest(run, grades)}
    if told.write is not None:
        text = json.dumps({"run": run, "grades": grades, "trec_eval": trec_eval(run, grades)}, separators=(",", ":"))
        told.write.write_text(text + "\n", encoding="utf-8")
    if told.runs is not None:
        for judged in sorted(told.runs.glob("*.qrels")):
            qrels = parse_qrels(judged.read_text("utf-8"))
            for file in sorted(told.runs.glob(f"{judged.stem}-*.run")):
                worst[file.name] = furthest(parse_run(file.read_text("utf-8")), qrels)
    for name, difference in worst.items():
        print(f"{name}: {difference:.1e}")
    return int(max(worst.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
