"""Which index a command works with, and how: by configuration when there is one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router.assembly import load
from smart_model_router.config import RouterConfig, SearchConfig
from smart_model_router.config.files import default_file
from smart_model_router.flow.search_service import EmbedCall, index_file
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.local.model_file import data_directory


@dataclass(frozen=True, slots=True)
class Indexed:
    """The file, and the section `search` that says how it is used. `config` is None where there is no configuration."""

    file: Path
    search: SearchConfig
    config: RouterConfig | None


def indexed(db: Path | None, config: Path | None) -> Indexed:
    """`db`, else the configuration's, else the user's own. A folder is indexed and searched without a configuration.

    Raises ConfigurationError.
    """
    found = load(config, given=frozenset()) if config is not None or default_file(os.environ) is not None else None
    search = SearchConfig() if found is None else found.search
    return Indexed(db if db is not None else index_file(search, data_directory()), search, found)


async def embeddings(found: Indexed, stack: AsyncExitStack) -> EmbedCall | None:
    """How the embedding model is asked; None when none is configured. The router behind it closes with the stack."""
    if found.config is None or found.search.embedding_model is None:
        return None
    router = await stack.enter_async_context(SmartModelRouter.from_config(found.config))

    async def embed(body: Mapping[str, Any]) -> Mapping[str, Any]:
        return (await router.embeddings(body)).body

    return embed
