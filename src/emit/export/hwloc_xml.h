/* hwloc_xml.h - the machine as an hwloc 2 topology (XML version 2.0, which 2.x and 3.x read;
 * include/hwloc.dtd) with our numbers as distances between its PUs.
 *
 * hwloc knows no machines of several hosts: here a host is a Package (info "HostName") and a rack a
 * Group (subtype "Rack"), a node of the export is a PU with the info "Name".  Distances
 * "RailgaugeBandwidth" (kind 10, user and bandwidth, MB/s) and "RailgaugeLatency" (kind 6, user and
 * latency, ns) are whole numbers; the diagonal is the largest bandwidth and 0 ns.
 * The second file is one of them as text for `hwloc-annotate FILE OUT root distances TEXT`:
 * name=, kind, number of objects, objects, values. */
#ifndef RG_HWLOC_XML_H
#define RG_HWLOC_XML_H

#include "emit/export/export.h"

enum { HWLOC_XML_MAX = 1024 };

/* EXIT_DATA: pairs that are not known or dead; EXIT_USAGE: too many nodes. */
int hwloc_xml_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                    struct err *err);

#endif
