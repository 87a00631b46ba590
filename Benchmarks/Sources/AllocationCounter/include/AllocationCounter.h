// Counts the allocations of each thread, whoever makes them: Swift's runtime, the engine, libcrypto.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

// How often the calling thread has allocated or reallocated memory. Always 0 where the C library is not glibc.
uint64_t allocation_count(void);

#endif
