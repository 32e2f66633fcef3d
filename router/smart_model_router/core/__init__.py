"""Pure decisions: no I/O, no clock, no dice, no lock, no log, no await. Objects here are not thread-safe."""
