// What sealdb export takes from libpq, PostgreSQL's own client library.

#ifndef SEALEDDB_POSTGRESQL_H
#define SEALEDDB_POSTGRESQL_H

// Debian has it in a folder of its own, which only pkg-config names; others where headers are.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#elif __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#error "SealedDB with the trait PostgreSQL needs libpq's headers, and there are none. Run scripts/setup of SealedDB, or: \
apt-get install libpq-dev"
#endif

#endif
