"""Jobs that stand still, and ranks compared: who is waited for, and where."""
