"""The experiments of CrossNER (Liu et al. 2021)."""
