"""What the incidents screen is made of: rows of its tables, who reads and writes for it, its commands."""
