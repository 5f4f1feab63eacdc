"""Many ranks of one job: who waits for whom, who is late, which link is slow."""
