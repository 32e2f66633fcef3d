"""Rehearsals of failure: a simulation in virtual time, and drills over real sockets."""
