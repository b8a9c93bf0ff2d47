"""Which target a model name means, and in which order targets are tried: pure rules."""
