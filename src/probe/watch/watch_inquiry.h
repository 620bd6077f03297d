/* watch_inquiry.h - a question that a rank asks when a verdict is near, and the file of its answer.
 *
 * See watch_inquire() in watch.h.  The question is asked in a thread of its own; what it answered
 * is in the file as soon as it is known, so that a verdict finds it there and waits for nothing. */
#ifndef RG_WATCH_INQUIRY_H
#define RG_WATCH_INQUIRY_H

enum inquiry_state {
    INQUIRY_OPEN, /* nothing has changed */
    INQUIRY_KEEP, /* there is a verdict: the file stays */
    INQUIRY_DROP, /* the ranks moved on: it is removed */
};

/* The question and its file in the folder `dir`; one of an earlier campaign is removed. */
void inquiry_set(const char *dir, const char *file, char *(*ask)(double sec));
/* Ask, unless there is nothing to ask or a question is open.  `look` is called by the thread now
 * and then until it is not INQUIRY_OPEN any more. */
void inquiry_start(enum inquiry_state (*look)(const void *context), const void *context);
void inquiry_end(void); /* waits for the thread, whose `look` must not say OPEN any more */

#endif
