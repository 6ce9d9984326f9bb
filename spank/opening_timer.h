/*
 * A limit for the time in which slurmstepd opens files.
 *
 * It opens files by names that the user has given, and a named pipe that nobody else opens lets it wait for ever: the job cannot be ended, and
 * the node is drained when it is tried. So its main thread is interrupted, again and again, until the opening fails as with any other file.
 */
#ifndef JAIL_OPENING_TIMER_H
#define JAIL_OPENING_TIMER_H

/* From 30 s on interrupts the calling thread until the timer is stopped. Without a timer Slurm's own behaviour remains, and its debug log says so. */
void opening_timer_start(void);

/* Stops it where it runs. */
void opening_timer_stop(void);

#endif
