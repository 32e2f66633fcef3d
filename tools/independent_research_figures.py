"""The figures of a research run, computed anew from its claim graph in exact fractions.

The other half of `independent_research_check.py`: metrics, index, gate, quality, completeness, by the words of the
specification. Where the product reads these in another way, the difference has a name and its sentence in LETTER. A
set of such names says which sentences are taken by the letter; with none, figures are those of the product at present.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

Json = dict[str, Any]
Readings = frozenset[str]
LETTER = {
    "superseded": "section 6, `verification = supported / factual claims`: a superseded claim is a factual claim",
    "sources": "section 7, `different registrable domains or publishers`: one that differs is enough",
}
AS_LANDED: Readings = frozenset()
METRICS = ("coverage", "source_quality", "agreement", "verification", "recency")
TIER_WEIGHTS = {"A": Fraction(1), "B": Fraction(6, 10), "C": Fraction(0)}
QUESTION_WEIGHTS = {1: 3, 2: 2, 3: 1}
UNKNOWN_RECENCY = Fraction(1, 4)
NEUTRAL_AGREEMENT = Fraction(1, 2)
LEVELS = ("full", "moderate", "low", "insufficient")
DELIVERIES = ("full", "moderate", "low", "withheld")
SHOWN = ("supported", "contradicted")
"""Statuses of claims whose sources a report shows: their documents are the cited ones."""
ROUNDING = Fraction(1, 10**12)


# ------------------------------------------------------------------------------------------------ graph of a round


def chosen(graph: Json, one_round: Json, pool: str) -> list[Json]:
    """Return those of `pool` that a round had, in its order."""
    return [graph[pool][position] for position in one_round[pool]]


def independent(one: Json, other: Json, readings: Readings) -> bool:
    """Return whether two documents are two sources: no copies, of another domain or publisher, or each vouched for."""
    if one["id"] == other["id"] or (one["origin"] and one["origin"] == other["origin"]):
        return False
    if one["alone_suffices"] and other["alone_suffices"]:
        return True
    owners = [(one[field].casefold(), other[field].casefold()) for field in ("domain", "publisher")]
    differing = [mine != yours for mine, yours in owners if mine and yours]
    return any(differing) if "sources" in readings else bool(differing) and all(differing)


def is_dual_sourced(claim: Json, documents: Mapping[str, Json], readings: Readings) -> bool:
    """Return whether two independent documents support a claim, one of them of tier A."""
    cited = [documents[name] for name in cited_by(claim)]
    return any(
        independent(*pair, readings) and "A" in (pair[0]["tier"], pair[1]["tier"]) for pair in combinations(cited, 2)
    )


def cited_by(claim: Json) -> list[str]:
    """Return the documents that a claim quotes, each once."""
    return list(dict.fromkeys(evidence["doc_id"] for evidence in claim["evidence"]))


def covers(claim: Json, documents: Mapping[str, Json], readings: Readings, others: Mapping[str, Json]) -> bool:
    """Return whether a claim covers its question: supported and, if critical, by two sources or a vouched-for one.

    An inference does when each of its premises does.
    """
    if claim["status"] != "supported":
        return False
    if claim["kind"] == "inference":
        rest = {name: each for name, each in others.items() if name != claim["id"]}
        premises = [rest.get(name) for name in claim["premises"]]
        return bool(premises) and all(each and covers(each, documents, readings, rest) for each in premises)
    vouched = any(documents[name]["alone_suffices"] for name in cited_by(claim))
    return not claim["critical"] or vouched or is_dual_sourced(claim, documents, readings)


def coverage(
    questions: Sequence[Json], claims: Sequence[Json], documents: Mapping[str, Json], readings: Readings
) -> Fraction:
    """Return the share of questions with a claim that covers them, weighted by priority."""
    others = {claim["id"]: claim for claim in claims}
    covered = {claim["question_id"] for claim in claims if covers(claim, documents, readings, others)}
    total = sum(QUESTION_WEIGHTS[question["priority"]] for question in questions)
    reached = sum(QUESTION_WEIGHTS[question["priority"]] for question in questions if question["id"] in covered)
    return Fraction(reached, total) if total else Fraction(0)


def cited_documents(claims: Sequence[Json], documents: Mapping[str, Json]) -> list[Json]:
    """Return the documents that supported and contradicted claims quote, each once."""
    names = dict.fromkeys(name for claim in claims if claim["status"] in SHOWN for name in cited_by(claim))
    return [documents[name] for name in names]


def agreement(claims: Sequence[Json], documents: Mapping[str, Json], readings: Readings) -> tuple[Fraction, bool]:
    """Return 1 - contradicted / claims with two or more independent sources, and whether there are none of those.

    The sources of a claim are those of all claims on its matter: entity, attribute and unit, or a pair of entities.
    """
    matters: dict[object, list[Json]] = {}
    for claim in claims:
        if claim["status"] in SHOWN and claim["kind"] != "inference":
            matters.setdefault(_matter(claim), []).append(claim)
    compared = [group for group in matters.values() if _has_two_sources(group, documents, readings)]
    if not compared:
        return NEUTRAL_AGREEMENT, True
    contradicted = sum(any(claim["status"] == "contradicted" for claim in group) for group in compared)
    return 1 - Fraction(contradicted, len(compared)), False


def _has_two_sources(claims: Sequence[Json], documents: Mapping[str, Json], readings: Readings) -> bool:
    names = dict.fromkeys(name for claim in claims for name in cited_by(claim))
    return any(independent(documents[one], documents[two], readings) for one, two in combinations(names, 2))


def _matter(claim: Json) -> object:
    if not (claim["entity"] and claim["attribute"]):
        return claim["id"]
    return frozenset({claim["entity"], claim["other"]} - {""}), claim["attribute"], claim["unit"]


def verification(claims: Sequence[Json], readings: Readings) -> Fraction:
    """Return the supported share of the claims, critical ones counted twice."""
    weights = {"supported": 0, "other": 0}
    for claim in claims:
        if claim["status"] != "superseded" or "superseded" in readings:
            weights["supported" if claim["status"] == "supported" else "other"] += 2 if claim["critical"] else 1
    return Fraction(weights["supported"], max(sum(weights.values()), 1))


def age_in_days(document: Json, as_of: datetime) -> Fraction | None:
    """Return the age of a document at `as_of`, at least 0; None for an unknown date, and for one of a day later."""
    if not document["published"] or document["date_confidence"] == "unknown":
        return None
    moment = datetime.combine(day_of(document["published"]), datetime.min.time(), UTC)
    age = Fraction(int((as_of - moment).total_seconds()), 86400)
    return None if age < -1 else max(age, Fraction(0))


def day_of(text: str) -> date:
    """Return a day: a year counts as its 1 July, a month as its 15th."""
    year, month, day = ([int(part) for part in text[:10].split("-")] + [0, 0])[:3]
    return date(year, month or 7, day or (15 if month else 1))


def is_recent(document: Json, settings: Json) -> bool:
    """Return whether a date of medium or high confidence is in the window: 183 days are in, 184 are not."""
    age = age_in_days(document, datetime.fromisoformat(settings["as_of"]))
    return age is not None and document["date_confidence"] != "low" and int(age) <= settings["window_days"]


def recency(documents: Sequence[Json], settings: Json) -> Fraction:
    """Return the mean decay of the cited documents, or the share of recent ones in mode binary."""
    if settings["recency_mode"] == "binary":
        return Fraction(sum(is_recent(each, settings) for each in documents), max(len(documents), 1))
    half_life = settings["half_life_days"]
    ages = [age_in_days(each, datetime.fromisoformat(settings["as_of"])) for each in documents]
    decays = [UNKNOWN_RECENCY if age is None else power(Fraction(1, 2), age / half_life) for age in ages]
    for at, document in enumerate(documents):
        if document["date_confidence"] == "low":
            decays[at] = min(decays[at], UNKNOWN_RECENCY)
    return sum(decays, Fraction(0)) / max(len(decays), 1)


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """Return base ** exponent to forty digits."""
    if not base:
        return Fraction(0) if exponent else Fraction(1)
    with localcontext(prec=50):
        logarithm = (Decimal(base.numerator) / base.denominator).ln()
        return Fraction((logarithm * exponent.numerator / exponent.denominator).exp())


# --------------------------------------------------------------------------------------------------- index and gate


def arithmetic_index(scores: Mapping[str, Fraction], weights: Mapping[str, Fraction]) -> Fraction:
    """Return the weighted arithmetic mean of the metrics."""
    return sum((scores[name] * weights[name] for name in METRICS), Fraction(0)) / sum(weights.values())


def geometric_index(scores: Mapping[str, Fraction], weights: Mapping[str, Fraction]) -> Fraction:
    """Return the weighted geometric mean of the metrics."""
    product = Fraction(1)
    for name in METRICS:
        product *= power(scores[name], weights[name] / sum(weights.values()))
    return product


INDEXES = {"arithmetic": arithmetic_index, "geometric": geometric_index}


def weights_of(settings: Json) -> dict[str, Fraction]:
    """Return the weights of the metrics as exact fractions of the numbers written."""
    return {name: Fraction(repr(weight)) for name, weight in settings["weights"].items()}


def audit(graph: Json, number: int, readings: Readings) -> Json:
    """Return the audit of the round at position `number` as the specification has it, in exact fractions."""
    one_round, inputs = graph["rounds"][number], graph["metric_inputs"]
    settings = inputs["metrics"]
    questions = chosen(graph, one_round, "questions")
    marked = {question["id"] for question in questions if question["critical"]}
    claims = [
        {**claim, "critical": claim["critical"] or claim["question_id"] in marked}
        for claim in chosen(graph, one_round, "claims")
        if not claim["chosen_by"] or claim["agreed_by"]
    ]
    documents = {each["id"]: each for each in chosen(graph, one_round, "documents")}
    cited = cited_documents(claims, documents)
    compared, nothing_compared = agreement(claims, documents, readings)
    scores: dict[str, Fraction] = {
        "coverage": coverage(questions, claims, documents, readings),
        "source_quality": sum((TIER_WEIGHTS[each["tier"]] for each in cited), Fraction(0)) / max(len(cited), 1),
        "agreement": compared,
        "verification": verification(claims, readings),
        "recency": recency(cited, settings),
    }
    if not cited:
        scores = {name: Fraction(0) for name in METRICS}
    indexes = {name: index(scores, weights_of(settings)) for name, index in INDEXES.items()}
    critical = {claim["id"] for claim in claims if claim["critical"]}
    found: Json = {
        "round": one_round["round"],
        **scores,
        "nothing_compared": nothing_compared,
        "recent_source_count": sum(is_recent(each, settings) for each in cited),
        "critical_contradictions": sum(
            each["relation"] == "unresolved" and bool({each["one"], each["other"]} & critical)
            for each in chosen(graph, one_round, "contradictions")
        ),
        "ci_arithmetic": indexes["arithmetic"],
        "ci_geometric": indexes["geometric"],
        "ci_score": indexes[settings["aggregation"]],
    }
    floors = floors_of(inputs)
    found["floor_violations"] = sorted(name for name, least in floors.items() if found[name] < least)
    found["gate_passed"] = gate(found, inputs, graph["rounds"][:number])
    return found


def floors_of(inputs: Json) -> dict[str, Fraction]:
    """Return the least value of each metric, and of the count of recent sources, that passes the gate."""
    matrix = inputs["policy"] == "matrix"
    floors = {name: high_of(inputs) if matrix else Fraction(repr(inputs["floors"].get(name, 0))) for name in METRICS}
    return {**floors, "recent_source_count": Fraction(inputs["min_recent_sources"])}


def high_of(inputs: Json) -> Fraction:
    """Return the least score that is called High: the second of three."""
    return Fraction(repr(inputs["tier_thresholds"][1]))


def gate(found: Json, inputs: Json, earlier: Sequence[Json]) -> bool:
    """Return whether a round passes: nothing below its floor, no critical contradiction, and the index or no fall."""
    if found["floor_violations"] or found["critical_contradictions"]:
        return False
    if inputs["policy"] == "two_tier":
        return bool(found["ci_score"] >= Fraction(repr(inputs["min_ci"])))
    return not earlier or bool(found["ci_score"] >= Fraction(earlier[-1]["audit"]["ci_score"]) - ROUNDING)


# ------------------------------------------------------------------------------------------- quality and completeness


def quality(graph: Json, manifest: Json, audits: Sequence[Json]) -> Json:
    """Return the quality metadata that follows from the audits."""
    inputs, best = graph["metric_inputs"], best_round(audits)
    settings, delivered = inputs["metrics"], audits[best]
    index = INDEXES[settings["aggregation"]]
    varied = [index({name: delivered[name] for name in METRICS}, weights) for weights in perturbed(settings)]
    target = Fraction(repr(inputs["min_ci"]))
    stable = len({value >= target for value in varied}) == 1
    said = manifest["quality_metadata"]
    return {
        "confidence_level": confidence_level(delivered),
        "best_ci_achieved": delivered["ci_score"],
        "target_ci": target,
        "selected_round": delivered["round"],
        "rounds_completed": len(audits),
        "failing_metrics": sorted(name for name in METRICS if delivered[name] < high_of(inputs)),
        "passing_metrics": sorted(name for name in METRICS if delivered[name] >= high_of(inputs)),
        "floor_violations": delivered["floor_violations"],
        "policy": inputs["policy"],
        "as_of": settings["as_of"],
        "stop_reason": manifest["run"]["stop_reason"],
        "aggregation": settings["aggregation"],
        "ci_geometric": delivered["ci_geometric"],
        "sensitivity min": min(varied),
        "sensitivity max": max(varied),
        "sensitivity gate_stable": stable,
        "borderline": inputs["policy"] == "two_tier" and delivered["gate_passed"] and not stable,
        "keys": sorted(said),
    }


def perturbed(settings: Json) -> Iterator[dict[str, Fraction]]:
    """Yield the weights with each one .05 lower and .05 higher, never below 0, divided by their sum."""
    weights = weights_of(settings)
    for name in METRICS:
        for change in (Fraction(-1, 20), Fraction(1, 20)):
            moved = {**weights, name: max(weights[name] + change, Fraction(0))}
            yield {key: weight / sum(moved.values()) for key, weight in moved.items()}


def best_round(audits: Sequence[Json]) -> int:
    """Return the position of the best round: gate passed, then the index, then the earlier one."""
    return max(range(len(audits)), key=lambda at: (audits[at]["gate_passed"], audits[at]["ci_score"], -at))


def confidence_level(delivered: Json) -> str:
    """Return the word for an index: full from .80 with a passed gate, moderate from .65, low from .50."""
    index = delivered["ci_score"]
    steps = (delivered["gate_passed"] and index >= Fraction(8, 10), index >= Fraction(65, 100), index >= Fraction(1, 2))
    return next((level for level, reached in zip(LEVELS, steps, strict=False) if reached), "insufficient")


def completeness(graph: Json, delivered: Json) -> tuple[dict[bool, Fraction], list[tuple[int, int]]]:
    """Return the supported share of critical and of other factual sentences, and the positions of the rest."""
    claims = {claim["id"]: claim for claim in chosen(graph, delivered, "claims")}
    counts = {True: [0, 0], False: [0, 0]}
    offenders: list[tuple[int, int]] = []
    for section, part in enumerate(graph["report"]["sections"]):
        for position, sentence in enumerate(part["sentences"]):
            made = [claims.get(name) for name in sentence["claims"]]
            supported = bool(made) and all(claim and claim["status"] == "supported" for claim in made)
            supported = supported and sentence["mark"] is None
            critical = not made or any(not claim or claim["critical"] for claim in made)
            counts[critical][0] += supported
            counts[critical][1] += 1
            if not supported:
                offenders.append((section, position))
    return {key: Fraction(good, total) if total else Fraction(1) for key, (good, total) in counts.items()}, offenders


def delivery(level: str, shares: Mapping[bool, Fraction]) -> str:
    """Return the delivery: that of the level, one step lower when critical citations or a twentieth of others lack."""
    lower = shares[True] < 1 or shares[False] < Fraction(95, 100)
    return DELIVERIES[min(LEVELS.index(level) + lower, len(DELIVERIES) - 1)]
