"""Many fusions and many calibrations at once. Needs numpy; equal to one at a time within 1e-12.

numpy only draws up a shortlist; the shortlist is scored by the very code of the twin. So the answers are equal to the
bit, explanations and notes included, whatever numpy's sums may round.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smart_model_router_scoring.calibration import Isotonic, Sigmoid
from smart_model_router_scoring.fusion.hits import MOST, Basis, Facts, Fused, Hit, Listed, reciprocal_sums
from smart_model_router_scoring.fusion.pipeline import TOP_N, Fusion, answered, check_top_n, split, without_answer
from smart_model_router_scoring.fusion.scales import RRF


def calibrate_scores(curve: Sigmoid | Isotonic, raw: ArrayLike, attainable: float = 0.0) -> NDArray[np.float64]:
    """Return `curve.calibrate` of each of `raw` as a new array; `attainable` matters on that scale only."""
    scores = np.asarray(raw, dtype=np.float64)
    with np.errstate(over="ignore"):
        x = _on_scale(curve.scale, scores, attainable)
        y = _sigmoid(curve, x) if isinstance(curve, Sigmoid) else np.interp(x, *np.transpose(curve.knots))
    return np.where(np.isnan(scores), 0.0, y)


def _on_scale(scale: str, scores: NDArray[np.float64], attainable: float) -> NDArray[np.float64]:
    if scale == "raw":
        return scores
    return scores / attainable if attainable else np.zeros_like(scores)


def _sigmoid(curve: Sigmoid, x: NDArray[np.float64]) -> NDArray[np.float64]:
    threshold, steepness = curve.parameters
    exponent = steepness * (x - threshold)
    small = np.exp(-np.abs(exponent))
    return np.where(exponent >= 0, 1.0, small) / (1.0 + small)


Id = TypeVar("Id", str, int)
Codes = NDArray[np.intp]

_FIRST_SHORTLIST = 256
_GROWTH = 8
_SLACK = 1 + 1e-9
"""More than the sums of numpy can be wrong by."""
_SPARSE = 4
"""Whole numbers up to this many times their count are codes as they stand; others are numbered first."""


def fuse(
    fusion: Fusion,
    results: Mapping[str, Listed[Id] | NDArray[np.int64] | None],
    *,
    modified_times: Mapping[Id, object] | None = None,
    now: datetime | None = None,
    evidence: Mapping[Id, float] | None = None,
    top_n: int = TOP_N,
) -> Fused[Id]:
    """Return the result of `fusion.fuse` for the same arguments. Lists of numbers may be numpy arrays.

    By ranks only: where scores are fused, it is `fusion.fuse` itself.
    """
    check_top_n(top_n)
    fusion.check(results)
    if fusion.config.fusion != RRF:
        plain: Any = {name: of.tolist() if isinstance(of, np.ndarray) else of for name, of in results.items()}
        return fusion.fuse(plain, modified_times=modified_times, now=now, evidence=evidence, top_n=top_n)
    basis = fusion.basis(answered(results))
    arrays = {name: found for name, found in results.items() if isinstance(found, np.ndarray)}
    ids, scores = split({name: found for name, found in results.items() if not isinstance(found, np.ndarray)})
    facts = Facts(modified_times, now, evidence, scores)
    table: _Table[Id] = _Table(basis, {name: arrays[name] if name in arrays else ids[name] for name in basis.weights})
    hits = _best(fusion, table, basis, facts, top_n)
    return Fused(tuple(hits), without_answer(results), len(table.present))


def _best(fusion: Fusion, table: _Table[Id], basis: Basis, facts: Facts[Id], top_n: int) -> list[Hit[Id]]:
    """The best of shortlists that grow until no id outside could be among them."""
    config = fusion.config
    size = _FIRST_SHORTLIST
    while True:
        codes, outside = table.shortlist(size)
        ranks = table.ranks(codes)
        sums = reciprocal_sums(ranks, basis.weights, basis.k)
        hits = fusion.best(sums, ranks, basis, facts, top_n)
        ceiling = outside * _SLACK * MOST
        settled = len(hits) == top_n and hits[-1].fused > ceiling
        hopeless = basis.calibration.calibrate(ceiling, basis.attainable) < config.min_confidence
        if settled or hopeless or len(codes) == len(table.present):
            return hits
        size *= _GROWTH


class _Table(Generic[Id]):
    """Ids as codes 0..n, with the rank of each code in each strategy (0: not in it) and its approximate sum."""

    def __init__(self, basis: Basis, lists: Mapping[str, Any]) -> None:
        self._ids, coded, size = _encoded(lists)
        self._ranks: dict[str, Codes] = {}
        sums = np.zeros(size)
        for name, codes in coded.items():
            distinct = _distinct(codes, size)
            places = np.arange(1, len(distinct) + 1)
            self._ranks[name] = np.zeros(size, dtype=np.intp)
            self._ranks[name][distinct] = places
            sums[distinct] += basis.weights[name] / (basis.k + places)
        seen = np.zeros(size, dtype=bool)
        for ranks in self._ranks.values():
            seen |= ranks > 0
        self.present: Codes = np.flatnonzero(seen)
        self._sums = sums[self.present]

    def shortlist(self, size: int) -> tuple[Codes, float]:
        """The `size` codes of the highest sums, and the highest sum outside, at most."""
        if size >= len(self.present):
            return self.present, 0.0
        cut = len(self.present) - size
        chosen = np.argpartition(self._sums, cut)
        return self.present[chosen[cut:]], float(self._sums[chosen[cut]])

    def ranks(self, codes: Codes) -> dict[str, dict[Id, int]]:
        """Strategy -> id -> rank, of these codes."""
        keys = [self._ids[code] for code in codes.tolist()]
        found = {name: ranks[codes].tolist() for name, ranks in self._ranks.items()}
        return {
            name: {key: rank for key, rank in zip(keys, places, strict=True) if rank} for name, places in found.items()
        }


def _encoded(lists: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Codes], int]:
    """The id of each code, the codes of each list, and how many codes there are."""
    numbers = {name: _whole_numbers(ids) for name, ids in lists.items()}
    if any(found is None for found in numbers.values()):
        return _numbered(lists)
    together = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(found for found in numbers.values() if found is not None)]
    )
    if together.size and (together.min() < 0 or together.max() >= _SPARSE * together.size):
        ids, codes = np.unique(together, return_inverse=True)
        ends = np.cumsum([len(listed) for listed in lists.values()])[:-1]
        return ids.tolist(), dict(zip(lists, np.split(codes, ends), strict=True)), len(ids)
    size = int(together.max()) + 1 if together.size else 0
    return range(size), {name: found for name, found in numbers.items() if found is not None}, size


def _whole_numbers(ids: Any) -> Codes | None:
    """The list as an array, if it holds nothing but whole numbers of 64 bits."""
    if isinstance(ids, np.ndarray):
        return ids if ids.dtype.kind == "i" else None
    try:
        return np.asarray(array("q", ids))
    except (TypeError, OverflowError):
        return None


def _numbered(lists: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Codes], int]:
    """Codes by order of first appearance, for ids of any kind."""
    code_of: defaultdict[Any, int] = defaultdict(count().__next__)
    plain = {name: ids.tolist() if isinstance(ids, np.ndarray) else ids for name, ids in lists.items()}
    coded = {name: np.fromiter(map(code_of.__getitem__, ids), np.intp, len(ids)) for name, ids in plain.items()}
    return list(code_of), coded, len(code_of)


def _distinct(codes: Codes, size: int) -> Codes:
    """The codes without repetitions, each where it was first."""
    places = np.arange(len(codes))
    first = np.zeros(size, dtype=np.intp)
    first[codes[::-1]] = places[::-1]  # of repeated indices the last assignment stays
    distinct: Codes = codes[first[codes] == places]
    return distinct
