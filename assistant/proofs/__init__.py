"""A diagnosis to walk through: its findings as a tree, the proof of each, and what can be supposed instead.

Everything here is a pure function of a diagnosis: a surface draws what it gives, and asks the conversation what it says.
"""
