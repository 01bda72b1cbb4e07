"""DBpedia's classes and types, categories, page titles, and the entity table."""
