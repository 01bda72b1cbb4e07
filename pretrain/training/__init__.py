"""What all trainings share: checkpoints, models, tokenizers, features, the trainer."""
