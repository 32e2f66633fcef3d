"""docs/configuration.md says what the code does."""

from __future__ import annotations

import subprocess
import sys

from tools.config_docs import DOCUMENT, described, rendered, rows, sections

TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_every_key_is_documented_with_its_default_and_range() -> None:
    """The tables are what the dataclasses give (`python tools/config_docs.py` writes them)."""
    assert rendered(TEXT) == TEXT


def test_every_section_is_documented_and_no_other() -> None:
    """Each section of the tree has one table with exactly its keys."""
    assert {name: list(keys) for name, keys in described(TEXT).items()} == {
        name: list(rows(section)) for name, section in sections()
    }


def test_every_key_has_a_meaning() -> None:
    """No key is only a number."""
    meanings = {f"{name}.{key}": said for name, keys in described(TEXT).items() for key, said in keys.items()}
    assert [key for key, said in meanings.items() if not said.strip()] == []


def test_a_changed_default_is_noticed() -> None:
    """The comparison fails when document and code differ."""
    changed = TEXT.replace("| `attempts` | 6 |", "| `attempts` | 7 |")
    assert changed != TEXT
    assert rendered(changed) != changed


_HEAVY = {"pydantic", "yaml", "genai_prices", "httpx2", "openai", "anthropic", "sqlite3", "psycopg", "valkey"}
_IMPORTS = f"""
import sys
from smart_model_router.config import RouterConfig
print(sorted({_HEAVY} & set(sys.modules)))
"""


def test_importing_the_configuration_is_light() -> None:
    """Whoever imports RouterConfig pays for neither pydantic nor yaml nor the price list."""
    done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_router_brings_no_store() -> None:
    """Neither SQLite nor the client of a server, unless the configuration names one."""
    code = "import sys, smart_model_router.assembly; print(sorted({'sqlite3', 'psycopg', 'valkey'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
