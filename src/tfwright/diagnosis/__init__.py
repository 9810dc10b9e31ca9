"""What a failed build means: families of messages, and a reader that finds the root error."""
