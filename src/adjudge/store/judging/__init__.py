"""Submissions, judge runs, rejudge batches, executions and their events."""
