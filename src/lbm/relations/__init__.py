"""What examples say of one another: relational problems from files, bottom clauses, columns, rules."""
