"""Research through the gateway: runs that belong to the key that began them, and go on whichever worker dies.

research_routes.py has the routes, research_request.py reads what a client asks for, and hosted_research.py holds the
runs of a configuration on a thread of their own. Nothing of research is imported unless `research.gateway` is true.
"""
