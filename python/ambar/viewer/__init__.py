"""The viewer in the browser: a server, and a page for each kind."""
