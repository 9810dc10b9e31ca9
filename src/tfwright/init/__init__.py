"""`tfwright init`: a directory for recipes of one's own."""
