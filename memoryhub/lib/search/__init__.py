"""Search: the words of a text, what a query asks for, the indexes that the database keeps, and the ranking."""
