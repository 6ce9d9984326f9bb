/*
 * How the tasks of a step find each other, without MPI: task 0 listens at a port that follows from the job's number, the
 * others come to it by its node's name, and it tells each where the others listen.
 *
 * Whoever can reach a worker could come too; who does not know the job, or says that it is a task that is there already,
 * is turned away.
 */
#ifndef DEEP_MEET_H
#define DEEP_MEET_H

#include <stddef.h>

/* Meets all tasks; broken where not all are there within `seconds`. */
void meet(double seconds);

/* The name of a task's node; for task 0 alone. */
const char *node_of(int rank);

/* A connection to a task that waits in `hear_from` for this one at the same time. */
int speak_to(int rank);
int hear_from(int rank);

/* All of a piece of memory, over one connection. */
void send_all(int socket, const void *bytes, size_t length);
void receive_all(int socket, void *bytes, size_t length);

/* Sends over one connection and receives over another, both at once: a ring in which all send first would stand still. */
void exchange(int out, const void *sent, size_t sends, int in, void *received, size_t receives);

/* Waits for all; what task 0 gives is what all return. */
int agree(int word);

/* Task 0 gets `count` numbers of each task, in their order; the others get nothing. */
void gather(const double *mine, int count, double *all);

#endif
