// Numbers as text, without what Swift does to format them.

#ifndef SEALEDDB_NUMBERS_H
#define SEALEDDB_NUMBERS_H

#include <stddef.h>

// Writes a finite number with 17 significant digits, as printf does with %.17g in the C locale. Returns how many bytes were
// written, without a NUL; 0 if there is no room for them.
size_t sealeddb_print_17_digits(double value, char *text, size_t capacity);

#endif
