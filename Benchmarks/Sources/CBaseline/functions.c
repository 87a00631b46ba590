#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void twice(sqlite3_context *context, int count, sqlite3_value **arguments) {
    (void)count;
    sqlite3_result_int64(context, sqlite3_value_int64(arguments[0]) * 2);
}

static void half(sqlite3_context *context, int count, sqlite3_value **arguments) {
    (void)count;
    const char *text = (const char *)sqlite3_value_text(arguments[0]);
    int length = sqlite3_value_bytes(arguments[0]) / 2;
    sqlite3_result_text(context, text ? text : "", length, SQLITE_TRANSIENT);
}

static void total_step(sqlite3_context *context, int count, sqlite3_value **arguments) {
    (void)count;
    sqlite3_int64 *total = sqlite3_aggregate_context(context, sizeof *total);
    if (total) *total += sqlite3_value_int64(arguments[0]);
}

static void total_final(sqlite3_context *context) {
    sqlite3_int64 *total = sqlite3_aggregate_context(context, 0);
    sqlite3_result_int64(context, total ? *total : 0);
}

int baseline_make_functions(baseline *db) {
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int rc = sqlite3_create_function_v2(db->handle, "twice", 1, flags, NULL, twice, NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function_v2(db->handle, "half", 1, flags, NULL, half, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function_v2(
            db->handle, "total_of", 1, flags, NULL, NULL, total_step, total_final, NULL);
    }
    return rc;
}

int baseline_read_blob(
    baseline *db, const char *table, const char *column, int64_t row, void *buffer, int chunk, uint64_t *checksum
) {
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(db->handle, "main", table, column, row, 0, &blob);
    int size = rc == SQLITE_OK ? sqlite3_blob_bytes(blob) : 0;
    for (int offset = 0; offset < size && rc == SQLITE_OK; offset += chunk) {
        int count = size - offset < chunk ? size - offset : chunk;
        rc = sqlite3_blob_read(blob, buffer, count, offset);
        *checksum += ((unsigned char *)buffer)[0];
    }
    sqlite3_blob_close(blob);
    return rc;
}

int baseline_write_blob(
    baseline *db, const char *table, const char *column, int64_t row, const void *buffer, int chunk
) {
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(db->handle, "main", table, column, row, 1, &blob);
    int size = rc == SQLITE_OK ? sqlite3_blob_bytes(blob) : 0;
    for (int offset = 0; offset < size && rc == SQLITE_OK; offset += chunk) {
        int count = size - offset < chunk ? size - offset : chunk;
        rc = sqlite3_blob_write(blob, buffer, count, offset);
    }
    int closed = sqlite3_blob_close(blob);
    return rc == SQLITE_OK ? closed : rc;
}

int baseline_backup(const char *path, baseline_options options, const char *target, baseline_options target_options) {
    baseline *source = NULL, *copy = NULL;
    int rc = baseline_open(path, options, &source);
    if (rc == SQLITE_OK) rc = baseline_open(target, target_options, &copy);
    sqlite3_backup *backup = rc == SQLITE_OK ? sqlite3_backup_init(copy->handle, "main", source->handle, "main") : NULL;
    if (rc == SQLITE_OK && backup == NULL) rc = sqlite3_errcode(copy->handle);
    if (backup) {
        int step = sqlite3_backup_step(backup, -1);
        rc = sqlite3_backup_finish(backup);
        if (rc == SQLITE_OK && step != SQLITE_DONE) rc = step;
    }
    baseline_close(copy);
    baseline_close(source);
    return rc;
}

int baseline_export(const char *path, baseline_options options, const char *target, const char *target_key) {
    baseline *db = NULL;
    int rc = baseline_open(path, options, &db);
    char *attach = sqlite3_mprintf("ATTACH %Q AS target KEY %Q", target, target_key);
    if (rc == SQLITE_OK) rc = baseline_execute(db, attach);
    if (rc == SQLITE_OK) rc = baseline_execute(db, "SELECT sqlcipher_export('target')");
    if (rc == SQLITE_OK) rc = baseline_execute(db, "DETACH target");
    sqlite3_free(attach);
    baseline_close(db);
    return rc;
}
