"""The web page that tags text."""
