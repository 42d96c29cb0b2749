"""The study of analysis: statistics, profiles, phase diagrams and maps of a RAMSES output."""
