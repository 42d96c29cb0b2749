"""What several test modules share: sample data, writers of other formats, servers, programs."""
