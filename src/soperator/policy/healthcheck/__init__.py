"""Deep checks: the choice of the next node, and the consequences of a result, without I/O so that tests can generate whole histories."""
