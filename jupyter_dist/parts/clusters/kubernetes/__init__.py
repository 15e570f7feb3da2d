"""Groups in the pods of a Kubernetes cluster: an Indexed Job, by the official client."""
