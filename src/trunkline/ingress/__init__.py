"""What clients speak: parsing requests, encoding answers."""
