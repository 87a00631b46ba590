#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int baseline_start(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

const char *baseline_sqlite_version(void) { return sqlite3_libversion(); }

char *baseline_text(const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char *result = calloc(1, 1);
    if (sqlite3_open(":memory:", &db) == SQLITE_OK && sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK) {
        while (result && sqlite3_step(stmt) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(stmt, 0);
            if (text == NULL) continue;
            size_t length = strlen(result);
            char *longer = realloc(result, length + strlen(text) + 2);
            if (longer == NULL) break;
            result = longer;
            sprintf(result + length, "%s%s", length ? "\n" : "", text);
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return result;
}

const char *baseline_message(const baseline *db) { return db ? sqlite3_errmsg(db->handle) : "not open"; }

int baseline_execute(baseline *db, const char *sql) { return sqlite3_exec(db->handle, sql, NULL, NULL, NULL); }

int64_t baseline_integer(baseline *db, const char *sql) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) return -rc;
    rc = sqlite3_step(stmt);
    int64_t result = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -rc;
    sqlite3_finalize(stmt);
    return result;
}

static int pragma(sqlite3 *db, const char *name, const char *value) {
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA %s = %s", name, value);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int pragma_integer(sqlite3 *db, const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return pragma(db, name, text);
}

static int set_key(sqlite3 *db, const baseline_options *options) {
#ifdef BASELINE_HAS_CODEC
    int rc = SQLITE_OK;
    if (options->memory_security) rc = pragma(db, "cipher_memory_security", "ON");
    if (rc == SQLITE_OK) rc = sqlite3_key_v2(db, "main", options->key, (int)strlen(options->key));
    if (rc == SQLITE_OK && options->page_size) rc = pragma_integer(db, "cipher_page_size", options->page_size);
    if (rc == SQLITE_OK && options->hmac) {
        char algorithm[32];
        snprintf(algorithm, sizeof algorithm, "HMAC_%s", options->hmac);
        rc = pragma(db, "cipher_hmac_algorithm", algorithm);
    }
    if (rc == SQLITE_OK && options->no_hmac) rc = pragma(db, "cipher_use_hmac", "OFF");
    // As SealedDB does: sorts and temporary tables would otherwise reach the disk in plaintext.
    if (rc == SQLITE_OK) rc = pragma(db, "temp_store", "MEMORY");
    return rc;
#else
    (void)db; (void)options;
    return SQLITE_MISUSE;
#endif
}

int baseline_open(const char *path, baseline_options options, baseline **result) {
    baseline *db = calloc(1, sizeof *db);
    *result = db;
    if (db == NULL) return SQLITE_NOMEM;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &db->handle, flags, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_busy_timeout(db->handle, 5000);
    if (rc == SQLITE_OK && options.key) rc = set_key(db->handle, &options);
    if (rc == SQLITE_OK && !options.key && options.page_size) {
        rc = pragma_integer(db->handle, "page_size", options.page_size);
    }
    if (rc == SQLITE_OK && options.cache_size) rc = pragma_integer(db->handle, "cache_size", -options.cache_size);
    if (rc == SQLITE_OK) rc = baseline_execute(db, "SELECT count(*) FROM sqlite_schema");
    if (rc == SQLITE_OK && options.journal_mode) rc = pragma(db->handle, "journal_mode", options.journal_mode);
    if (rc == SQLITE_OK && options.synchronous) rc = pragma(db->handle, "synchronous", options.synchronous);
    return rc;
}

void baseline_close(baseline *db) {
    if (db == NULL) return;
    sqlite3_close_v2(db->handle);
    free(db);
}

void baseline_sink(uint64_t value) {
    static volatile uint64_t sink;
    sink = value;
}
