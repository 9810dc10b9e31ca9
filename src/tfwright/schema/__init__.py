"""JSON schemas of the documents."""
