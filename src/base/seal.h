/* seal.h - the checksum that a JSON file of ours carries of its own text, so that what changed in
 * it since it was written is found: "checksum": "8 hexadecimal digits", a key of the outermost
 * object.
 *
 * It is the CRC32C of the text without white space outside of strings, with zeros for those digits:
 * an indentation may change, nothing else. */
#ifndef RG_SEAL_H
#define RG_SEAL_H

#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY "checksum"
#define SEAL_EMPTY "00000000" /* of a text that is yet to be sealed */

/* Where the digits are in text[len], which must be JSON; NULL: it has no such key, or another
 * value. *crc, unless NULL, is what they should say. */
const char *seal_find(const char *text, size_t len, uint32_t *crc);
/* Write the digits that seal_find() finds. */
void seal_set(char *text, size_t len);
/* A sealed copy of the text, NUL-terminated, where the key is made if need be; the caller frees. */
char *seal_text(const char *text, size_t len, size_t *sealed_len);

#endif
