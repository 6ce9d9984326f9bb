/*
 * A limit for the time in which a daemon opens files by names that the user has given.
 *
 * A named pipe that nobody else opens lets it wait for ever. In slurmstepd the job cannot be ended then, and the node is drained when it is tried.
 * slurmd waits for its child that opens the file of `sbcast`: each keeps a process and a thread of slurmd, and outlives the job (regular.h has more). So
 * the thread is interrupted, again and again, until the opening fails as with any other file.
 */
#ifndef JAIL_OPENING_TIMER_H
#define JAIL_OPENING_TIMER_H

enum { OPENING_STEP_SECONDS = 30, OPENING_FILE_SECONDS = 5 };

/* From that time on interrupts the calling thread until the timer is stopped. Without a timer Slurm's own behaviour remains, and its debug log says so. */
void opening_timer_start(int seconds);

/* Stops it where it runs. */
void opening_timer_stop(void);

#endif
