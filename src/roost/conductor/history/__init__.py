"""The histories of instances: what the API database, their cells and the records know, as one story."""
