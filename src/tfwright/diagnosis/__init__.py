"""What a failed build means: causes and remedies."""
