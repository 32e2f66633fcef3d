"""Deep research as a workflow: its steps, its inputs, and the runs that users begin, watch and resume."""
