"""The report of a run: reading its folder, drawing its pictures, writing its page."""
