"""Addresses with the tiers that they should have, judged by the author of the rules and after them.

A is official, peer-reviewed, institutional or primary; B is reputable; C is a content farm or a copy without author.
"""

from __future__ import annotations

_A = """
https://www.who.int/news-room/fact-sheets/detail/malaria
https://www.nasa.gov/missions/artemis
https://www.ons.gov.uk/economy
https://www.gov.uk/guidance/vat
https://www.stats.govt.nz/topics/population
https://www.abs.gov.au/statistics
https://www.stat.go.jp/english/data
https://www150.statcan.gc.ca/n1/daily
https://www.bundesbank.de/en/statistics
https://ec.europa.eu/eurostat/data
https://data.worldbank.org/indicator/SP.POP.TOTL
https://www.navy.mil/Resources/Fact-Files
https://web.mit.edu/physics/research.html
https://www.ox.ac.uk/research/vaccines
https://www.nature.com/articles/s41586-021-03819-2
https://doi.org/10.1000/182
https://link.springer.com/article/10.1007/x
https://proceedings.mlr.press/v139/radford21a.html
https://arxiv.org/abs/2210.03629
https://www.rfc-editor.org/rfc/rfc9110
https://datatracker.ietf.org/doc/html/rfc9110
https://www.w3.org/TR/WCAG22
https://html.spec.whatwg.org/multipage
https://docs.python.org/3/library/asyncio.html
https://www.postgresql.org/docs/17/release-17.html
https://developer.mozilla.org/en-US/docs/Web/HTTP
https://www.sqlite.org/lang.html
https://learn.microsoft.com/en-us/azure/architecture
"""
_B = """
https://en.wikipedia.org/wiki/Tide
https://www.reuters.com/world/europe
https://www.bbc.co.uk/news/science-environment-1
https://www.britannica.com/science/tide
https://stackoverflow.com/questions/11227809
https://github.com/python/cpython/issues/1
https://somebody.github.io/notes
https://medium.com/@somebody/why-tides
https://www.medrxiv.org/content/10.1101/x
https://www.example.com/products
https://a-town-newspaper.example/2024/05/council
https://people.csail.mit.edu/~somebody/notes.html
https://www.cs.ox.ac.uk/blogs/somebody/post
https://blogs.worldbank.org/opendata/x
https://wiki.postgresql.org/wiki/Tuning
https://lists.w3.org/Archives/Public/x
https://forums.docker.com/t/x
https://community.example.gov/threads/17
https://www.princeton.edu/student/essay.html
https://shop.example.edu.example/buy
"""
_C = """
https://www.ehow.com/how_1_fix-tap.html
https://www.answers.com/q/what_is_a_tide
https://www.wikiwand.com/en/Tide
https://www.quora.com/What-is-a-tide
https://www.coursehero.com/file/1/tides
https://www.scribd.com/document/1/Tides
https://pinterest.com/pin/1
https://x.com/somebody/status/1
https://docplayer.net/1-Tides.html
"""
ADDRESSES = {url: tier for tier, urls in (("A", _A), ("B", _B), ("C", _C)) for url in urls.split()}
