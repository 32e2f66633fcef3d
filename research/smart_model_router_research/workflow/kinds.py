"""The kinds of steps in a file: which keys each takes, and what it runs. Other packages add kinds of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smart_model_router_research.workflow import model_step
from smart_model_router_research.workflow.step import Run

COMMON = frozenset(
    {
        *("name", "kind", "agent", "needs", "depends_on", "when", "run", "on_error", "inputs", "outputs"),
        *("timeout", "estimate", "loop"),
    }
)
"""The keys of every kind. `agent` is another word for `kind`, `depends_on` for `needs`."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of steps. `options` are keys whose values its run finds in `StepInput.options`.

    `keys` are its other keys beside the common ones, `required` those of both that have to be there. `run` is what it
    runs; without one it runs the `function` that is named, or is the engine's own affair (approval, workflow).
    `outputs` are the names that a step declares where it names none; None: any.
    """

    keys: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    run: Run | None = None
    outputs: tuple[str, ...] | None = None

    @property
    def taken(self) -> frozenset[str]:
        """All keys that a step of this kind may have."""
        return COMMON | self.keys | self.options


STEP_KINDS: Mapping[str, StepKind] = {
    "model": StepKind(
        frozenset({"retry"}),
        options=frozenset(model_step.OPTIONS),
        required=frozenset({"body"}),
        run=model_step.ask_model,
        outputs=model_step.OUTPUTS,
    ),
    "call": StepKind(frozenset({"function", "retry"}), required=frozenset({"function"})),
    "approval": StepKind(frozenset({"message"})),
    "workflow": StepKind(frozenset({"workflow"}), required=frozenset({"workflow"})),
}
"""The kinds that are built in, by name."""
