"""The suite of airspeed velocity that guards the main speeds of ambar; see ../../README.md."""
