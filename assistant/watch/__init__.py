"""Keeping an eye on a machine: rounds of checks, alerts with a memory, metrics, webhooks."""
