"""The vocabulary of the router: requests, outcomes, errors, events, reports, and the ports that others implement."""
