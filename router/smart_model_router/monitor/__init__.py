"""Views of a router's state: its sinks, its gauges, the dashboard's snapshots."""
