"""Reads dumps: files, units of work, pages, and facts about the wiki."""
