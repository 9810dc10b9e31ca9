"""One module for each command that is more than the pipeline, named as it is typed."""
