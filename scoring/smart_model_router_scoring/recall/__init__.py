"""Selects memories to show: date-aware ranking, the latest version of a fact, and the prompt that uses both.

The rules are those of the founding note on date-aware recall; docs/how-to/tools-and-recall.md shows them at work.
Whatever changes a ranking is off unless it is asked for.
"""
