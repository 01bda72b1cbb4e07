"""Digests: random decisions by seed, purpose and example; fingerprints; names of results."""

from __future__ import annotations

from hashlib import blake2b


def digest64(seed: int, purpose: str, key: str | int) -> int:
    """Uniform integer in [0, 2**64); the same arguments always give the same number."""
    name = f"{seed}\x00{purpose}\x00{key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big")


def uniform(seed: int, purpose: str, key: str | int) -> float:
    """Uniform number in [0, 1); the same arguments always give the same number."""
    return (digest64(seed, purpose, key) >> 11) * 2.0**-53


def fingerprint(*values: object) -> str:
    """32 hexadecimal digits that change when the `repr` of any value changes."""
    return blake2b("\x1f".join(map(repr, values)).encode(), digest_size=16).hexdigest()


def short_key(text: str) -> str:
    """16 hexadecimal digits that change with the text: names of kept results."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
