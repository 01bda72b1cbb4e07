"""How a stage runs over the parts of its input: on local processes, and on Beam."""
