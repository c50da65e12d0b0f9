"""Tables from relational problems: columns that are queries, and the transformer that makes them."""
