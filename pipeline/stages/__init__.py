"""The stages of a run, and the code that runs them: local processes, or Apache Beam."""
