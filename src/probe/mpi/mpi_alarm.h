/* mpi_alarm.h - members that wait for something outside MPI learn that one of them has given up.
 *
 * Who gives up raises the alarm and goes to the members' next common call of MPI; the others hear
 * it while they wait, give up too, and come to the same call, in which all tell who raised it.
 * After it everybody takes the alarms in: each member's one message. */
#ifndef RG_MPI_ALARM_H
#define RG_MPI_ALARM_H

/* What it says: the cause is with who raised it, or it is one that suffers. */
enum mpi_alarm { ALARM_NONE, ALARM_VICTIM, ALARM_CAUSE };

/* comm: what world->enter() gave (a pointer to an MPI_Comm).  0, or -1 when MPI itself failed. */
int mpi_alarm_raise(void *comm, enum mpi_alarm what);
enum mpi_alarm mpi_alarm_heard(void *comm); /* of several the cause */
/* raised[i]: what member i did.  Not collective: the messages are there or on their way. */
int mpi_alarm_take(void *comm, const enum mpi_alarm *raised);

#endif
