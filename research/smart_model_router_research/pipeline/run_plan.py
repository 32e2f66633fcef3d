"""The plan of a run before it begins: its questions and steps, the most it may use, and the gates it cannot pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from smart_model_router_research.deep.claims import CitedDocument, SourceTier, SubQuestion
from smart_model_router_research.deep.corpus_search import CorpusSearch
from smart_model_router_research.deep.metrics import TIER_WEIGHTS, is_recent_source, recency_of
from smart_model_router_research.deep.quality import AuditConfig
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.deep.topics import plan_questions
from smart_model_router_research.pipeline.planning_steps import left_out, queries_of
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.workflow_file import research_workflow
from smart_model_router_research.web.backends import SearchBackend
from smart_model_router_scoring.confidence import compute_ci
from smart_model_router_scoring.confidence.confidence_index import reaches

LOOKED_AT = 200
"""Documents of all corpora together that are read for a plan, evenly."""
_ROUND = "_r"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreachableGate:
    """A gate that the sources cannot pass: the best that they allow, the least that passes, its setting."""

    gate: str
    best: float
    needed: float
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of a run. `steps` and `searches` are the fewest, a likely number, and the most.

    The fewest are those of a run whose first round passes, the likely ones of two rounds. `looked_at` of `documents`
    were read for the gates; none is named where the others could pass it. `sent` says what goes where of the web.
    """

    questions: tuple[SubQuestion, ...]
    out_of_scope: tuple[str, ...]
    steps: tuple[int, int, int]
    searches: tuple[int, int, int]
    kinds: tuple[str, ...]
    documents: int
    looked_at: int
    gates: tuple[UnreachableGate, ...]
    sent: tuple[str, ...] = ()


async def plan_of(
    inputs: RunInputs, searches: Sequence[DocumentSearch], backends: Sequence[SearchBackend] = ()
) -> RunPlan:
    """Return the plan of a run over these corpora and back-ends. Nothing is searched, and nothing is sent."""
    sent = tuple(_sent(inputs, bool(searches), backends))
    questions = plan_questions(inputs.topic)
    cited, total = await _looked_at([each for each in searches if isinstance(each, CorpusSearch)])
    rounds = [[query for each in questions for query in queries_of(each, number)] for number in (1, 2)]
    least, likely = len(rounds[0]), len(rounds[0]) + len(rounds[1])
    needs = {step.name: step.needs for step in research_workflow(inputs.analysts).steps}
    steps = list(TopologicalSorter(needs).static_order())
    within = [sum(_round_of(name) <= number for name in steps) for number in (1, 2, inputs.max_rounds)]
    most = inputs.budget.searches
    return RunPlan(
        questions=tuple(questions),
        out_of_scope=tuple(left_out(inputs.topic, questions)),
        steps=(within[0], min(within[1], within[2]), within[2]),
        searches=(min(least, most), min(likely if inputs.max_rounds > 1 else least, most), most),
        kinds=tuple(dict.fromkeys(name.rpartition(_ROUND)[0] or name for name in steps)),
        documents=total,
        looked_at=len(cited),
        gates=() if sent else tuple(unreachable_gates(cited, inputs.audit_config(), others=total - len(cited))),
        sent=sent,
    )


def _sent(inputs: RunInputs, has_corpus: bool, backends: Sequence[SearchBackend]) -> Iterator[str]:
    """Yield what a run sends to the web, and where to."""
    words = ", in no words of your documents" if has_corpus else ""
    for each in backends:
        place = f" ({each.caps.place})" if each.caps.place else ""
        said = f"the questions and what is searched for them{words}"
        yield f"{said}, to {each.name}{place}" if each.caps.exposure == "public" else f"nothing, to {each.name}{place}"
    if inputs.seed_urls:
        yield f"requests for the pages that you name ({len(inputs.seed_urls)}), to their hosts"
    if backends:
        yield f"requests for pages that these find, {inputs.budget.fetches} at most, to their hosts"


def unreachable_gates(cited: Sequence[CitedDocument], config: AuditConfig, *, others: int = 0) -> list[UnreachableGate]:
    """Return the gates that no report over these documents can pass, however good its claims are.

    `others` are documents that nothing is known of: with any, only what counts documents is certain.
    """
    found: list[UnreachableGate] = []
    usable = [each for each in cited if each.tier is not SourceTier.C]
    recent = sum(is_recent_source(each, config.metrics) for each in usable) + others
    if recent < config.min_recent_sources:
        found.append(
            UnreachableGate(
                gate="recent_source_count",
                best=recent,
                needed=config.min_recent_sources,
                setting="--min-recent-sources, or dates in corpus.yaml",
            )
        )
    if others or not usable:
        return found
    best = {
        **dict.fromkeys(config.weights, 1.0),
        "source_quality": max(TIER_WEIGHTS[each.tier] for each in usable),
        "recency": max(recency_of(each, config.metrics) for each in usable),
    }
    is_matrix = config.policy == "matrix"
    floors: Mapping[str, float] = dict.fromkeys(config.weights, config.high) if is_matrix else config.floors
    setting = "tier_thresholds" if is_matrix else "floor_thresholds.{}"
    found += [
        UnreachableGate(
            gate=name, best=best[name], needed=least, setting=f"evaluation.deep_research.{setting.format(name)}"
        )
        for name, least in floors.items()
        if best.get(name, 1.0) < least
    ]
    ci = compute_ci(best, config.weights, config.metrics.aggregation)
    if not is_matrix and not reaches(ci, config.min_ci):
        found.append(UnreachableGate(gate="ci_score", best=ci, needed=config.min_ci, setting="--min-ci"))
    return found


def _round_of(name: str) -> int:
    number = name.rpartition(_ROUND)[2]
    return int(number) if number.isdecimal() else 1


async def _looked_at(searches: Sequence[CorpusSearch]) -> tuple[list[CitedDocument], int]:
    """Read documents of each corpus, evenly; return them, and how many there are without those that have no text."""
    found: list[CitedDocument] = []
    total = 0
    each = max(1, LOOKED_AT // max(1, len(searches)))
    for search in searches:
        paths = sorted(search.index.paths())
        step = max(1, -(-len(paths) // each))
        read = await search.read(paths[::step])
        found += [document.stored.cited() for document in read]
        total += len(paths) - len(paths[::step]) + len(read)
    return found, total
