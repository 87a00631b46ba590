// The C boundary of the encrypted build.

#ifndef SEALEDDB_SQLCIPHER_H
#define SEALEDDB_SQLCIPHER_H

#if !__has_include(<sqlite3.h>)
#error "SealedDB needs SQLCipher's headers, and there are none. Run scripts/setup of SealedDB, or: \
apt-get install pkg-config libsqlcipher-dev (on Debian 12: apt-get install -t bookworm-backports libsqlcipher-dev)"
#else

// Makes sqlite3.h declare sqlite3_key_v2 and sqlite3_rekey_v2. Where only libsqlite3-dev is installed, or pkg-config is
// not, this is SQLite's own header, which has neither; no macro tells the two apart. So reading the name of the function
// brings back a macro, whose absence is an error that says more than that an identifier is undeclared.
#define SQLITE_HAS_CODEC 1
#define SEALEDDB_HEADER_HAS_CODEC 1
#pragma push_macro("SEALEDDB_HEADER_HAS_CODEC")
#undef SEALEDDB_HEADER_HAS_CODEC
#define sqlite3_key_v2 _Pragma("pop_macro(\"SEALEDDB_HEADER_HAS_CODEC\")") sqlite3_key_v2
#include <sqlite3.h>
#undef sqlite3_key_v2

// SQLCipher's own version is not in its public header; 4.5.0 is the first release on SQLite 3.36.0.
#if SQLITE_VERSION_NUMBER < 3036000
#error "SealedDB needs SQLCipher 4.5 or later, and this libsqlcipher-dev is older (Debian 12 ships 3.4.1). \
Run scripts/setup of SealedDB, or: apt-get install -t bookworm-backports libsqlcipher-dev"
#endif

#ifndef SEALEDDB_HEADER_HAS_CODEC
#error "SealedDB needs SQLCipher's sqlite3.h, and the one that was found is SQLite's own. Run scripts/setup of SealedDB, \
or: apt-get install pkg-config libsqlcipher-dev (on Debian 12: apt-get install -t bookworm-backports libsqlcipher-dev)"
#else

#include "../CSQLiteShims/shims.h"

static const int sealeddb_has_codec = 1;

// As a function, which Swift does not take for a constant condition.
static inline int sealeddb_watches_pages(void) { return 1; }

static inline int sealeddb_key(sqlite3 *db, const void *key, int count) {
    return sqlite3_key_v2(db, "main", key, count);
}

static inline int sealeddb_rekey(sqlite3 *db, const void *key, int count) {
    return sqlite3_rekey_v2(db, "main", key, count);
}

static inline const void *sealeddb_address_of_key(void) { return (const void *)&sqlite3_key_v2; }

#endif
#endif
#endif
