"""Tables from relational problems (propositionalisation): columns that are queries, and what makes them."""
