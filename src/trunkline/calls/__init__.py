"""Use cases: a call from admission to settlement, through ports only."""
