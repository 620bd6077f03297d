/* xml_text.h - text inside XML attributes. */
#ifndef RG_XML_TEXT_H
#define RG_XML_TEXT_H

#include <stdio.h>

/* With the five entities that every XML reader knows, so that simple readers (hwloc's own, without
 * libxml2) understand them.  The text is UTF-8 without control characters, as all names of ours. */
void xml_text(FILE *out, const char *text);

#endif
