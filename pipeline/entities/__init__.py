"""The stage `resolve`: pages -> classes, in the entity table."""
