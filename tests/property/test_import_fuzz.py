"""Whatever stands in a LiteLLM configuration: every value is accounted for, and what comes out is read or refused."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.cli.importing import convert
from smart_model_router.cli.importing.import_report import leaves
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.yaml_document import parse

FOLDER = Path(__file__).parents[1] / "fixtures" / "litellm"
SOURCES: list[Any] = [yaml.load(path.read_text("utf-8"), yaml.BaseLoader) for path in sorted(FOLDER.glob("*.yaml"))]
ODD = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1e99",
            "os.environ/",
            "os.environ/A B",
            "${X}",
            "${",
            "*",
            "a/*",
            "openai/",
            "/",
            "true",
            "file:x",
        ]
    ),
    st.text(alphabet="abc/:[]@*$ \u00e9", max_size=12),
)
VALUES = st.recursive(
    st.one_of(st.none(), ODD),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ODD, inner, max_size=3)),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path below the top of a tree of mappings and lists."""
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for step, member in members for place in [(*path, step), *places(member, (*path, step))]]


@given(st.data())
def test_any_value_in_any_place_is_accounted_for(data: st.DataObject) -> None:
    """One value of a good file replaced by anything: no traceback, and no value without a word."""
    tree = copy.deepcopy(data.draw(st.sampled_from(SOURCES)))
    path = data.draw(st.sampled_from(places(tree)))
    owner = tree
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = data.draw(VALUES)
    document = parse(yaml.safe_dump(tree).encode(), "x")
    with contextlib.suppress(ConfigurationError):
        found = convert(document)
        assert sorted(map(str, leaves(document.data))) == sorted(str(entry.path) for entry in found.entries)
        RouterConfig.from_mapping(found.config, environ={})
