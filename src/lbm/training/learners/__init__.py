"""Learners: the estimators, as scikit-learn knows them, and what they do out of sight."""
