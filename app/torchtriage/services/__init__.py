"""What one can ask the service for; one function and one transaction each."""
