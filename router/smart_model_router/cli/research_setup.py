"""Runs of research from the command line: settings, inputs, and everything that a run needs, opened and closed."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router import ModelNotFound, SmartModelRouter
from smart_model_router.assembly import load
from smart_model_router.cli.output import OptionFault
from smart_model_router.cli.research_text import fault_of_input
from smart_model_router.cli.workflow_store import opened_store
from smart_model_router.config import EvaluationConfig, ResearchConfig
from smart_model_router.config.egress import elsewhere_text, targets_elsewhere
from smart_model_router.config.files import default_file
from smart_model_router.config.research_sections import load_evaluation
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import offered, research_backends, research_inputs
from smart_model_router_research.deep.artefact_records import MANIFEST
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.engine import StoredRun, TableRunStore
from smart_model_router_research.model_forms.model_calls import ChatRouter
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora, open_corpora
from smart_model_router_research.pipeline.run_inputs import CORPUS, RunInputs
from smart_model_router_research.pipeline.workflow_file import NAME
from smart_model_router_research.web.backends import SearchBackend
from smart_model_router_scoring.options import ConfigError

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResearchQuestion


@dataclass(frozen=True, slots=True)
class ResearchSettings:
    """The sections of the configuration that research reads; their defaults where there is none."""

    research: ResearchConfig
    evaluation: EvaluationConfig
    workflows: WorkflowsConfig


def settings_of(config: Path | None, evaluation: Path | None = None) -> ResearchSettings:
    """Return the settings; `evaluation` is a file that takes the place of that section.

    Raises ConfigurationError, and OptionFault for that file.
    """
    judged = None if evaluation is None else _evaluation_in(evaluation)
    if config is None and default_file(os.environ) is None:
        return ResearchSettings(ResearchConfig(), judged or EvaluationConfig(), WorkflowsConfig())
    found = load(config, given=frozenset())
    return ResearchSettings(found.research, judged or found.evaluation, found.workflows)


def _evaluation_in(file: Path) -> EvaluationConfig:
    try:
        return load_evaluation(file)
    except ConfigurationError as error:
        first = error
        if error.key == "configuration":
            first = ConfigurationError("--evaluation", error.value, error.expected)
        raise OptionFault([first, *error.others]) from None


def no_source() -> OptionFault:
    """Return the fault of a command that has nothing to read, with all that would be a source here."""
    backends = ", ".join(f"--backend {each.label}" for each in offered(os.environ))
    wanted = (
        "a source is needed: --corpus PATH (a folder, a document, or an index of smr index), research.corpora in the "
        f"configuration, a page (--seed-url URL), or the web ({backends}). To try it: smr research demo, or smr "
        "research corpus pydoc DIR, which writes one"
    )
    return OptionFault([ConfigurationError("--corpus", [], wanted)])


def inputs_of(asked: ResearchQuestion, settings: ResearchSettings, deliver: str | None = None) -> RunInputs:
    """Return the inputs of a run by the options and the settings. Raises OptionFault, also without a source."""
    try:
        inputs = research_inputs(
            asked.topic,
            now=datetime.now(UTC),
            research=settings.research,
            evaluation=settings.evaluation,
            goal=asked.goal,
            corpora=asked.corpus or None,
            backends=asked_backends(asked.corpus, asked.backend, settings.research),
            seed_urls=tuple(asked.seed_url or ()) or None,
            as_of=asked.as_of,
            domain=asked.domain,
            max_rounds=asked.max_rounds,
            min_ci=asked.min_ci,
            min_recent_sources=asked.min_recent_sources,
            budget={"usd": asked.budget_usd, "seconds": asked.timeout},
            deliver=deliver,
            model="" if asked.offline else asked.model,
        )
    except ConfigError as error:
        raise fault_of_input(error) from None
    if asked.offline and asked.model:
        wanted = "one of the two is needed: a model, or none"
        raise OptionFault([ConfigurationError("--offline", f"--model {asked.model}", wanted)])
    has_web = bool(inputs.seed_urls) or any(name != CORPUS for name in inputs.backends)
    if not has_web and not inputs.corpora:
        raise no_source()
    known = {each.name for each in backends_of(inputs, settings.research)} | {CORPUS}
    for name in inputs.backends:
        if name not in known:
            labels = (each.label for each in (*settings.research.backends, *offered(os.environ)))
            named = ", ".join(dict.fromkeys((CORPUS, *labels)))
            raise OptionFault([ConfigurationError("--backend", name, f"one of these is needed: {named}")])
    return inputs


def asked_backends(
    corpus: Sequence[str] | None, backend: Sequence[str] | None, research: ResearchConfig
) -> tuple[str, ...] | None:
    """Return the back-ends of a command: those that it names, else the configured ones; None without either.

    A corpus that the command names is searched in any case.
    """
    names = [*([CORPUS] if corpus else []), *(backend or [each.label for each in research.backends])]
    return tuple(dict.fromkeys(names)) or None


def backends_of(inputs: RunInputs, research: ResearchConfig) -> list[SearchBackend]:
    """Return the search back-ends of a run. Raises OptionFault for one that cannot be made."""
    try:
        return research_backends(research, os.environ, inputs.backends)
    except ConfigurationError as error:
        raise OptionFault([error]) from None


def folder_of_runs() -> Path:
    """Return the folder that has the folders of artefacts, each under the id of its run."""
    return data_directory() / "research" / "runs"


@asynccontextmanager
async def opened_research(
    config: Path | None,
    workflows: WorkflowsConfig,
    engine: str | None = None,
    corpora: OpenedCorpora | None = None,
    model: str = "",
    backends: Sequence[SearchBackend] = (),
) -> AsyncGenerator[tuple[DeepResearch, TableRunStore]]:
    """Open the runs of research and their store, and close them. Without `corpora` no run can go on.

    A run with a `model` has the router of the configuration.
    """
    async with opened_store(config, workflows) as store, opened_router(config, model) as router:
        yield (
            DeepResearch(
                router,
                store=store,
                corpora=() if corpora is None else corpora.searches,
                backends=backends,
                folder=folder_of_runs(),
                engine=engine or workflows.engine,
                lease=workflows.lease,
                heartbeat=workflows.heartbeat,
            ),
            store,
        )


@asynccontextmanager
async def opened_router(config: Path | None, model: str, option: str = "--model") -> AsyncGenerator[ChatRouter | None]:
    """Open the router of the configuration, and close it; None where no model is asked.

    Raises OptionFault for a model that it does not have, or that is elsewhere under `egress: local_only`,
    ConfigurationError without a configuration.
    """
    if not model:
        yield None
        return
    tiers_of(config, model, option)
    async with SmartModelRouter.from_config(load(config, given=frozenset())) as router:
        yield router


def tiers_of(config: Path | None, model: str, option: str = "--model") -> tuple[str, ...]:
    """Return the names of a model's tiers.

    Raises OptionFault for one that the configuration does not have, or that is elsewhere under `egress: local_only`.
    """
    found = load(config, given=frozenset())
    try:
        tiers = tuple(tier.name for tier in found.resolve(model).tiers)
    except ModelNotFound as error:
        raise OptionFault([ConfigurationError(option, model, error.message)]) from None
    if found.research.egress == "local_only" and (away := targets_elsewhere(found, model)):
        raise OptionFault([ConfigurationError(option, model, elsewhere_text(away))])
    return tiers


async def corpora_of(inputs: RunInputs, *, lost_too: bool = False) -> OpenedCorpora:
    """Open the corpora of a run, where it searches them. Raises OptionFault, a line for each that cannot be used.

    With `lost_too`, for a run that goes on, these are told among those that are skipped.
    """
    try:
        return await open_corpora(
            inputs.corpora if CORPUS in inputs.backends else (),
            as_of=inputs.moment(),
            policy=inputs.policy(),
            cache=data_directory() / "research",
            lost_too=lost_too,
        )
    except CorpusError as error:
        raise OptionFault([error, *error.others]) from None


async def known_run(store: TableRunStore, run_id: str) -> StoredRun:
    """Return a run of research. Raises RunNotFound, and OptionFault for one of another workflow."""
    found = await store.load(run_id)
    if found.workflow != NAME:
        wanted = f"a run of research is needed: it is of the workflow {found.workflow} (smr workflow runs)"
        raise OptionFault([ConfigurationError("RUN", run_id, wanted)])
    return found


def is_accepted(result: ResearchResult) -> bool:
    """Return whether a person accepted the report: it is shown with their name."""
    if result.artefacts is None:
        return False
    try:
        manifest = json.loads((result.artefacts / MANIFEST).read_text("utf-8"))
        return bool(manifest["run"]["accepted_by"])
    except (OSError, ValueError, LookupError, TypeError):  # a folder that was removed, or changed by hand
        return False


def told_skipped(skipped: Iterable[str]) -> list[str]:
    """Return the lines about what of the corpora is not read."""
    return [f"smr: not read: {line}" for line in skipped]
