"""The stage `corpus`: documents and entities -> labelled, balanced examples."""
