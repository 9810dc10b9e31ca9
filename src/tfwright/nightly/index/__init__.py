"""The wheel index: a folder of static files that pip and uv install from."""
