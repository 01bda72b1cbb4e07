"""Files and folders, local and remote: parts, locks, finished folders, digests of inputs."""
