#include "AllocationCounter.h"

#include <features.h>

#ifdef __GLIBC__

#include <errno.h>
#include <stddef.h>

// What an executable defines takes the place of the C library's own functions, which stay reachable under these names:
// https://sourceware.org/glibc/manual/latest/html_node/Replacing-malloc.html
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// A counter for each thread: one for all would make the threads of a concurrent benchmark wait for its cache line.
static _Thread_local uint64_t count __attribute__((tls_model("initial-exec")));

uint64_t allocation_count(void) { return count; }

void *malloc(size_t size) {
    count++;
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count++;
    return __libc_calloc(number, size);
}

void *realloc(void *pointer, size_t size) {
    count++;
    return __libc_realloc(pointer, size);
}

void *memalign(size_t alignment, size_t size) {
    count++;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *pointer = memalign(alignment, size);
    if (pointer == NULL) return ENOMEM;
    *result = pointer;
    return 0;
}

#else

uint64_t allocation_count(void) { return 0; }

#endif
