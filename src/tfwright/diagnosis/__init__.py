"""What a failed build means: a catalogue of what people met, and a reader that finds the first error in a log."""
