"""The null of an index: questions of many subjects asked of it, by words and, where it has vectors, by both."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from smart_model_router_scoring.evidence import BEST, Features, Null, QuestionTerms, question_evidence
from smart_model_router_scoring.retrieval.embedders import telling_text
from smart_model_router_scoring.retrieval.null_questions import NULL_QUESTIONS
from smart_model_router_scoring.retrieval.stems import Tokenizer
from smart_model_router_scoring.retrieval.strategies import TermCounts, best_rows, evidence_of
from smart_model_router_scoring.retrieval.vectors import VectorMatrix

Questions = Mapping[str, Sequence[str]]
Vectors = Mapping[str, Sequence[float]]
"""By text."""


def texts_to_embed(questions: Questions = NULL_QUESTIONS) -> list[str]:
    """The questions and their telling words, each text once."""
    asked = [text for texts in questions.values() for text in texts]
    return list(dict.fromkeys(one for text in asked for one in (text, telling_text(text))))


def ask_null(
    sql: sqlite3.Connection,
    tokenizer: Tokenizer,
    chunks: int,
    vectors: Vectors | None,
    questions: Questions = NULL_QUESTIONS,
) -> tuple[Null, Null | None]:
    """The null of an index of `chunks` by words alone, and that with cosines where it has vectors."""
    counts = TermCounts()
    matrix = None if vectors is None else VectorMatrix.load(sql)
    by_words: dict[str, list[Features]] = {subject: [] for subject in questions}
    with_cosines: dict[str, list[Features]] = {subject: [] for subject in questions}
    for subject, text in ((subject, text) for subject, texts in questions.items() for text in texts):
        stems = tokenizer.question(text)
        counted = counts.of(sql, stems, 0)
        question = QuestionTerms.of(stems, counted, chunks)
        rows = {row: name for row, (name, _) in best_rows(sql, stems, BEST, chunks, counted).items()}
        passages = evidence_of(sql, question, rows)
        by_words[subject].append(question_evidence(question, [passages[row] for row in rows]))
        if matrix is not None and vectors is not None:
            near = matrix.nearest([vectors[text], vectors[telling_text(text)]], BEST)
            rows |= {_row(sql, one.chunk_id): one.chunk_id for one in near}
            passages |= evidence_of(sql, question, [row for row in rows if row not in passages])
            both = [passages[row].with_cosines(near.cosines(chunk_id)) for row, chunk_id in rows.items()]
            with_cosines[subject].append(question_evidence(question, both))
    return Null.of(by_words), None if matrix is None else Null.of(with_cosines)


def _row(sql: sqlite3.Connection, chunk_id: str) -> int:
    row: int = sql.execute("SELECT id FROM chunks WHERE chunk_id = ?", (chunk_id,)).fetchone()[0]
    return row
