"""The model forms of research: prompts, replies against a schema, and the checks by code of everything in them."""
