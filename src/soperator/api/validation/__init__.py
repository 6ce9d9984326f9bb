"""What a schema cannot say: rules in CEL and in Python, strict reading, and checks of one object against others."""
