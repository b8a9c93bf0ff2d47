"""What providers speak: one file a wire language."""
