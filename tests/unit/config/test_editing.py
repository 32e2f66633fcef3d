"""Keys that are set in a configuration file: the rest stays to the letter, or the file stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from smart_model_router.config.editing import edited, set_keys
from smart_model_router.domain.errors import ConfigurationError

VALUES: dict[str, Any] = {
    "search": {"fusion": "relative", "weights": {"vector": 0.25}, "min_confidence": 0.41},
}
HEAD = "# mine\nversion: 1   # the format\nmodels:\n  smart: {tiers: []}  # flow is left alone\n"


def read(text: str) -> Any:
    """The search section, as numbers and text."""
    return yaml.safe_load(text)["search"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        HEAD.rstrip("\n"),
        HEAD + "search:\n  index: a.sqlite  # built at night\n",
        HEAD + "search:\n    min_confidence: 30%  # a guess\n    weights:\n        # of links\n        graph: 0.1\n",
        HEAD + "search:  # later\nlimits: {}\n",
        "search:\n  fusion: 'rrf' # by ranks\n  weights:\n    vector: 1\n" + HEAD,
        HEAD.replace("\n", "\r\n"),
        "# ünï\n" + HEAD + "search:\n  model: größe\n",
    ],
    ids=range(8),
)
def test_values_are_set_and_everything_else_stays(text: str) -> None:
    """Every line with a comment is still there, in order; what is read is the old file with the new values."""
    changed = edited(text, VALUES, "c.yaml")
    before = yaml.safe_load(text)
    assert read(changed)["fusion"] == "relative"
    assert read(changed)["weights"] == {**((before.get("search") or {}).get("weights") or {}), "vector": 0.25}
    assert read(changed)["min_confidence"] == 0.41
    assert {k: v for k, v in yaml.safe_load(changed).items() if k != "search"} == {
        k: v for k, v in before.items() if k != "search"
    }
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in changed.splitlines() if "#" in line] == comments


@pytest.mark.parametrize("text", [HEAD + "search:  # later\n", json.dumps({"search": {"index": "größe"}}, indent=2)])
def test_lines_end_as_those_of_the_file_do(text: str) -> None:
    """A file of Windows stays one; nothing else differs from the same file with plain line ends."""
    changed = edited(text.replace("\n", "\r\n"), VALUES, "c.yaml")
    assert changed == edited(text, VALUES, "c.yaml").replace("\n", "\r\n")
    assert changed.count("\n") > text.count("\n")


def test_a_value_that_is_there_is_replaced_in_its_place() -> None:
    """Not a character more."""
    text = HEAD + "search:\n  fusion: rrf  # by ranks\n  min_confidence: 0.3\n"
    values = {"search": {"fusion": "distribution", "min_confidence": 0.5}}
    wanted = text.replace("rrf", "distribution").replace("0.3", "0.5")
    assert edited(text, values, "c.yaml") == wanted
    assert edited(wanted, values, "c.yaml") == wanted


def test_json_stays_json() -> None:
    """A configuration in JSON keeps its order, its indentation, and letters beyond ASCII as they are."""
    raw = {"version": 1, "search": {"index": "größe"}, "models": {}}
    text = json.dumps(raw, indent=4, ensure_ascii=False) + "\n"
    changed = edited(text, VALUES, "c.json")
    assert json.loads(changed)["search"] == {"index": "größe", **VALUES["search"]}
    assert "größe" in changed
    assert list(json.loads(changed)) == ["version", "search", "models"]
    assert changed.splitlines()[1] == '    "version": 1,'


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "search: {index: a}\n",
        "x: &s\n  index: a\nsearch: *s\n",
        HEAD + "search: {}\n",
        HEAD + "search: text\n",
        HEAD + "search:\n  weights: [1]\n",
        HEAD + "search:\n  index: a\nsearch:\n  index: b\n",
        HEAD + "...\n---\nother: 1\n",
        "- a\n- b\n",
        "{not json}",
        "a: [",
    ],
    ids=range(10),
)
def test_a_file_that_cannot_be_kept_as_it_is_stays_as_it_was(tmp_path: Path, text: str) -> None:
    """An error that names the file; neither a change nor a copy of it."""
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"c\.yaml.*by hand"):
        set_keys(file, VALUES)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_the_old_file_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    """Both have its mode, and a link stays a link to the changed file."""
    file, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    file.write_text(HEAD)
    file.chmod(0o640)
    link.symlink_to(file)
    backup = set_keys(link, VALUES)
    assert (backup, backup.read_text()) == (tmp_path / "real.yaml.bak", HEAD)
    assert read(file.read_text())["fusion"] == "relative"
    assert link.is_symlink()
    assert [one.stat().st_mode & 0o777 for one in (file, backup)] == [0o640, 0o640]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.yaml", "real.yaml", "real.yaml.bak"]


def test_each_change_keeps_what_it_replaced(tmp_path: Path) -> None:
    """The first copy is of the file as it was written by hand: no later one replaces it."""
    file, texts = tmp_path / "c.yaml", [HEAD]
    file.write_text(HEAD)
    for number in range(3):
        backup = set_keys(file, {"search": {"min_confidence": number / 10}})
        assert backup.read_text() == texts[-1]
        texts.append(file.read_text())
    copies = [tmp_path / name for name in ("c.yaml.bak", "c.yaml.bak.2", "c.yaml.bak.3")]
    assert [one.read_text() for one in copies] == texts[:3]


def test_a_file_that_cannot_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails on the way, no half file and no temporary one is left."""
    file = tmp_path / "c.yaml"
    file.write_text(HEAD)

    def full(_: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        set_keys(file, VALUES)
    assert file.read_text() == HEAD
    assert sorted(one.name for one in tmp_path.iterdir()) == ["c.yaml", "c.yaml.bak"]
