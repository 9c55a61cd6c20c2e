"""What the model and the user ask for: activate and its kin, listings, reasons."""
