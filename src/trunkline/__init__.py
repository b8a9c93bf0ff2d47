"""Trunkline: one clean OpenAI stream in front of every text, image and video model."""

__version__ = "0.1.0"
