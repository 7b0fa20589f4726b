"""What containers write: how it is kept, in files or in memory, and which part of it somebody asks for."""
