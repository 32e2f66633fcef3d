"""Research through the gateway: runs that belong to the key that began them, and go on whichever worker dies.

research_routes.py has the routes, mcp_endpoint.py the tools of MCP, research_request.py reads what a client asks for,
hosted_research.py holds the runs of a configuration on a thread of their own, and charged_router.py is the router as
one key has it. Nothing of research is imported unless `research.gateway` is true.
"""
