"""The stage `extract`: pages of a dump -> documents."""
