#include "engine.h"

#include <stdlib.h>
#include <string.h>

// Takes the place of what a program would do with what it has read. All subjects add up the same: integers, reals
// without their fraction, the lengths of texts and blobs, 1 for a NULL.
static inline void use(uint64_t *sum, uint64_t value) { *sum += value; }

static inline int bind(
    sqlite3_stmt *stmt, int column, baseline_kind kind, const baseline_values *values, int index
) {
    switch (kind) {
    case BASELINE_INTEGER: return sqlite3_bind_int64(stmt, column, values->integers[index]);
    case BASELINE_REAL: return sqlite3_bind_double(stmt, column, values->reals[index]);
    case BASELINE_TEXT:
        return sqlite3_bind_text(stmt, column, values->texts[index], values->text_lengths[index], SQLITE_STATIC);
    case BASELINE_BLOB:
        return sqlite3_bind_blob(stmt, column, values->blobs[index], values->blob_length, SQLITE_STATIC);
    case BASELINE_NULL: return sqlite3_bind_null(stmt, column);
    }
    return SQLITE_MISUSE;
}

int baseline_insert(
    baseline *db, const char *sql, const baseline_kind *kinds, int columns, int rows, const baseline_values *values
) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    int index = 0;
    for (int row = 0; row < rows && rc == SQLITE_OK; row++) {
        for (int column = 0; column < columns && rc == SQLITE_OK; column++) {
            rc = bind(stmt, column + 1, kinds[column], values, index++ & (values->count - 1));
        }
        if (rc != SQLITE_OK) break;
        do rc = sqlite3_step(stmt);
        while (rc == SQLITE_ROW);
        if (rc == SQLITE_DONE) rc = sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return rc;
}

static void use_copy(uint64_t *sum, const void *bytes, int length) {
    char *copy = malloc((size_t)length + 1);
    if (copy == NULL) return;
    memcpy(copy, bytes, (size_t)length);
    baseline_sink((uint64_t)(uintptr_t)copy);
    use(sum, (uint64_t)length);
    free(copy);
}

int baseline_read(
    baseline *db, const char *sql, const baseline_kind *kinds, int columns, bool copies, uint64_t *checksum
) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) return -rc;
    int rows = 0;
    uint64_t sum = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rows++;
        for (int column = 0; column < columns; column++) {
            switch (kinds[column]) {
            case BASELINE_INTEGER: use(&sum, (uint64_t)sqlite3_column_int64(stmt, column)); break;
            case BASELINE_REAL: use(&sum, (uint64_t)(int64_t)sqlite3_column_double(stmt, column)); break;
            case BASELINE_NULL: use(&sum, sqlite3_column_type(stmt, column) == SQLITE_NULL); break;
            case BASELINE_TEXT: {
                const unsigned char *text = sqlite3_column_text(stmt, column);
                int length = sqlite3_column_bytes(stmt, column);
                if (copies) use_copy(&sum, text, length);
                else use(&sum, text ? (uint64_t)length : 0);
                break;
            }
            case BASELINE_BLOB: {
                const unsigned char *blob = sqlite3_column_blob(stmt, column);
                int length = sqlite3_column_bytes(stmt, column);
                if (copies) use_copy(&sum, blob, length);
                else use(&sum, blob ? (uint64_t)length : 0);
                break;
            }
            }
        }
    }
    *checksum = sum;
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? rows : -rc;
}

// Reads one row of (integer, text), and resets.
static inline int point(sqlite3_stmt *stmt, int64_t id, uint64_t *sum) {
    int rc = sqlite3_bind_int64(stmt, 1, id);
    if (rc != SQLITE_OK) return rc;
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        use(sum, (uint64_t)sqlite3_column_int64(stmt, 0));
        const unsigned char *text = sqlite3_column_text(stmt, 1);
        use(sum, text ? (uint64_t)sqlite3_column_bytes(stmt, 1) : 0);
    }
    return sqlite3_reset(stmt);
}

int baseline_points(
    baseline *db, const char *sql, const int64_t *ids, int count, bool in_transaction, uint64_t *checksum
) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && in_transaction) rc = baseline_execute(db, "BEGIN");
    *checksum = 0;
    for (int index = 0; index < count && rc == SQLITE_OK; index++) rc = point(stmt, ids[index], checksum);
    if (rc == SQLITE_OK && in_transaction) rc = baseline_execute(db, "COMMIT");
    sqlite3_finalize(stmt);
    return rc;
}

int baseline_insert_batches(baseline *db, const char *sql, int batch, int rows, const baseline_values *values) {
    static const baseline_kind kinds[] = {BASELINE_INTEGER, BASELINE_TEXT, BASELINE_REAL, BASELINE_BLOB};
    sqlite3_stmt *stmt = NULL, *begin = NULL, *commit = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(db->handle, "BEGIN IMMEDIATE", -1, &begin, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(db->handle, "COMMIT", -1, &commit, NULL);
    int index = 0;
    for (int row = 0; row < rows && rc == SQLITE_OK; row++) {
        if (batch && row % batch == 0 && (rc = sqlite3_step(begin)) == SQLITE_DONE) rc = sqlite3_reset(begin);
        for (int column = 0; column < 4 && rc == SQLITE_OK; column++) {
            rc = bind(stmt, column + 1, kinds[column], values, index++ & (values->count - 1));
        }
        if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_DONE) rc = sqlite3_reset(stmt);
        if (rc == SQLITE_OK && batch && row % batch == batch - 1 && (rc = sqlite3_step(commit)) == SQLITE_DONE) {
            rc = sqlite3_reset(commit);
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    return rc;
}

int baseline_run(baseline *db, const char *sql) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) return -rc;
    int rows = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) rows++;
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? rows : -rc;
}

int baseline_insert_texts(
    baseline *db, const char *sql, const char *const *texts, const int *lengths, int rows, int columns
) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    for (int row = 0, index = 0; row < rows && rc == SQLITE_OK; row++) {
        for (int column = 1; column <= columns && rc == SQLITE_OK; column++, index++) {
            rc = sqlite3_bind_text(stmt, column, texts[index], lengths[index], SQLITE_STATIC);
        }
        if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_DONE) rc = sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return rc;
}

int baseline_lookups(
    baseline *db, const char *sql, const char *const *names, const int *lengths, int count, uint64_t *checksum
) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    for (int index = 0; index < count && rc == SQLITE_OK; index++) {
        rc = sqlite3_bind_text(stmt, 1, names[index], lengths[index], SQLITE_STATIC);
        if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
            for (int column = 0; column < 2; column++) {
                const unsigned char *text = sqlite3_column_text(stmt, column);
                use(checksum, text ? (uint64_t)sqlite3_column_bytes(stmt, column) : 0);
            }
        }
        if (rc == SQLITE_OK) rc = sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return rc;
}
