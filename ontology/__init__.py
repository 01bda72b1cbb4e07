"""What the world is: classes, categories, titles, and the table that leads from a title to its category."""
