"""The study of collections: many small datasets in one store, against files and other stores."""
