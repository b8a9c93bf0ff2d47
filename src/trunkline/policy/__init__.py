"""Who may do what, at which price: pure rules."""
