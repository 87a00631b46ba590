#include "numbers.h"

#include <stdio.h>

size_t sealeddb_print_17_digits(double value, char *text, size_t capacity) {
    int count = snprintf(text, capacity, "%.17g", value);
    return count > 0 && (size_t)count < capacity ? (size_t)count : 0;
}
