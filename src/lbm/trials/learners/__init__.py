"""What the learning parts compare: tables, learners, two protocols, and how differences are judged."""
