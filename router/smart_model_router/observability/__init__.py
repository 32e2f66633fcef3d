"""Events to sinks: metrics, logs and traces, each cut off from the request path and from each other.

metric_definitions.py is every metric there is; worker.py is how a slow sink is kept apart; the rest is one sink a file.
"""
