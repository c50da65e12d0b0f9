"""Storage: models, examples and unfinished runs, in files that are checked before they are believed."""
