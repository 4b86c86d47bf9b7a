"""Watches a Kubernetes cluster for failed training jobs and sends their logs to the service, over HTTP."""
