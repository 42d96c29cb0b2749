"""Opening, converting, exporting and summarizing data of any kind."""
