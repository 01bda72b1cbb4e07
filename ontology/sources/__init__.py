"""What DBpedia and Wikidata publish: infobox mappings, types of pages, SQL tables."""
