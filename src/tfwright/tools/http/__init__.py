"""Downloads and questions over HTTP."""
