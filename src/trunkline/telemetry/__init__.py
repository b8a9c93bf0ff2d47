"""Metrics, logs, traces."""
