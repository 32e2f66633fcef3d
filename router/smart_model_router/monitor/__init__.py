"""What is made of a router's state for those who watch it: its sinks, its gauges, the dashboard's pictures."""
