"""Learning from relational problems: columns, machines, and how well they do on folds kept apart."""
