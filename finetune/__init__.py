"""Fine-tuning and evaluation of entity taggers."""
