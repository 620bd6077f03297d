/* tables_impl.h - option rows that commands on tables of measured steps share. */
#ifndef RG_TABLES_H
#define RG_TABLES_H

#include "base/opt.h"
#include "calibrate/calibrate.h"

/* The member is a const char *. */
#define CONSTANTS_ROW(type, member)                                                                \
    {                                                                                              \
        "constants", 0, "FILE",                                                                    \
            "constants of the step model (default jobs/training/constants.json)",                  \
            OPT_INTO(type, member)                                                                 \
    }
/* The member is a struct batch_tables. */
#define LEAVE_OUT_ROW(type, member)                                                                \
    {                                                                                              \
        "leave-out", 0, "CONDITIONS",                                                              \
            "rows that are neither fitted nor scored: \"id=nt_*,pp>1\", where all conditions "     \
            "hold; "                                                                               \
            "may be given again",                                                                  \
            OPT_LIST(type, member.leave_out, member.leave_outs)                                    \
    }
#define TABLE_ROW(type, member)                                                                    \
    {                                                                                              \
        "table", .help = "give a table of measured steps",                                         \
                 OPT_LIST(type, member.table, member.tables)                                       \
    }

#endif
