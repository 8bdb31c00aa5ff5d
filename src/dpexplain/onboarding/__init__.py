"""Before the first answer: checks that cost nothing, a domain found for a price, and a release of a fitted model in one call."""
