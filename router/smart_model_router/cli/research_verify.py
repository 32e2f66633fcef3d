"""`smr research verify`: the folder of a finished run, computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router_research.deep.verifying import verify

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResearchVerify


def run_verify(asked: ResearchVerify) -> int:
    """Print each problem; 1 when there is one."""
    found = verify(asked.folder)
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
