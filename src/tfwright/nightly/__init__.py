"""The build host: what is due tonight, what came of it, and the index and pages that show it."""
