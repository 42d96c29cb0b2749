def read_regions(reader, count): raise ValueError("cells")
