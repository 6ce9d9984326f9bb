"""Pure decisions: functions from the observed state to actions. They read no clock, no network and no random numbers, so that tests can replay any
history.
"""
