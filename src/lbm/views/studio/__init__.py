"""Questions from other programs and from the browser: each is answered by a worker, under a budget."""
