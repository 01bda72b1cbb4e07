"""Errors that a user can mend.

UserError    one line: what, where, what to do; the command line prints it and exits with 2
"""

from __future__ import annotations


class UserError(ValueError):
    """Wrong input or setting. The message names the value, the place and the remedy in one line."""
