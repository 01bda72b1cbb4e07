"""DualNER (Zeng et al. 2022): zero-shot cross-lingual taggers by dual teaching."""
