"""The pipeline that every call goes through, phase by phase."""
