"""trunkline-scene: draws storybook pictures and films of what a prompt names; not a neural model."""
