"""Domain-adaptive pre-training by masked language modelling."""
