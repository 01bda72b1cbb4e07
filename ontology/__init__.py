"""What the world is: classes, categories, titles, and the table from a title to its category."""
