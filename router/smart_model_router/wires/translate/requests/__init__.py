"""Requests translated: plain dict in, plain dict out, one module a pair."""
