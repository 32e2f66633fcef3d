"""The dashboard: one static page, and one stream of events that every browser shares.

feed.py draws a picture a second while somebody looks; board.py is the HTTP of it; static/ is the page.
"""
