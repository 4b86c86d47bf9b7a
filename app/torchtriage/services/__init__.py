"""The operations of the service. Each is one function, and changes the database in one transaction."""
