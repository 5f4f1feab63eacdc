"""Whom a capture is of: processes found, identified, checked beforehand and looked at afterwards."""
