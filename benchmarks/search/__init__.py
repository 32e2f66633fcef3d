"""Search, measured: judged collections, questions that cannot be answered, and the fit of the evidence."""
