"""Our side of what runs in a target (`probes.capture.agent`): its folder, its orders, what it gave."""
