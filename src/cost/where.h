/* where.h - "m.json: tiers[2].curves.uni": the place of a value in a file, for messages. */
#ifndef RG_WHERE_H
#define RG_WHERE_H

enum { WHERE = 256 };

/* Longer places are cut; returns buf. */
char *where_at(char buf[WHERE], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
