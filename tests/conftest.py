"""What all tests share: the log looks as in the operator."""

from soperator.runtime import log

log.configure()
