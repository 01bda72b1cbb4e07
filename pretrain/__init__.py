"""Pre-training of encoders: by entity tagging, and by masked language modelling."""
