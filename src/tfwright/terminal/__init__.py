"""What the commands print: one module a topic, text for people, JSON for machines."""
