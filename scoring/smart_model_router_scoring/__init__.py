"""Scores that mean something: fusion, calibration, confidence, tools, recall and their evaluation.

Pure mathematics but for `retrieval`. Import what you need from its sub-module; importing this package imports none.
"""

from __future__ import annotations

from smart_model_router_scoring._moved import MOVED, install

install(MOVED)
