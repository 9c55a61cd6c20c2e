"""What is stored, looked up by people and programs: store and layers opened for one request."""
