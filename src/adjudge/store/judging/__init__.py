"""Submissions, judge runs, rejudge batches, executions, evaluations and their events."""
