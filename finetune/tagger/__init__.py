"""The tagger: loading, fitting, prediction."""
