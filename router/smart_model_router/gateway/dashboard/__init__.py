"""The dashboard: one static page, and one stream of events that every browser shares.

dashboard_routes.py draws a snapshot a second while a browser reads; standalone.py needs no gateway; static/: its page.
"""
