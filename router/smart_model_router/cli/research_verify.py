"""`smr research verify`: the folder of a finished run, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, OptionFault, print_answer, print_json, print_line
from smart_model_router.cli.research_setup import folder_of_runs
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.verifying import verify

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResearchVerify


def run_verify(asked: ResearchVerify) -> int:
    """Print each problem; 1 when there is one. Raises OptionFault for what is neither a folder nor a run with one."""
    folder = next((each for each in (Path(asked.folder), folder_of_runs() / asked.folder) if each.is_dir()), None)
    if folder is None:
        wanted = "a folder of artefacts, or the id of a run with a report (see smr research list), is needed"
        raise OptionFault([ConfigurationError("DIR|RUN", asked.folder, wanted)])
    found = verify(folder)
    if asked.as_json:
        print_json(
            {
                "folder": found.folder,
                "sound": found.is_sound,
                "files": found.files,
                "rounds": found.rounds,
                "claims": found.claims,
                "problems": [{"place": each.place, "problem": each.problem} for each in found.problems],
            }
        )
    else:
        for each in found.problems:
            print_answer(f"{' '.join(f'{each.place}: {each.problem}'.split())}\n")
    said = (
        f"{len(found.problems)} {'problem' if len(found.problems) == 1 else 'problems'}" if found.problems else "sound"
    )
    print_line(f"{found.folder}: {found.files} files, {found.rounds} rounds, {found.claims} claims: {said}")
    return ExitCode.OK if found.is_sound else ExitCode.FAILED
