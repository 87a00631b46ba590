// What Swift cannot import from sqlite3.h: variadic functions, SQLITE_TRANSIENT and VFS method tables. Both engines
// share this header. Include it after <sqlite3.h>.

#ifndef SEALEDDB_SHIMS_H
#define SEALEDDB_SHIMS_H

// The oldest library version that has all functions which this build calls. Raise it when you call a newer function. It
// depends only on the headers, so the library may be updated, or downgraded to this version.
#if SQLITE_VERSION_NUMBER >= 3039000
static const int sealeddb_oldest_version_number = 3039000;
#elif SQLITE_VERSION_NUMBER >= 3038000
static const int sealeddb_oldest_version_number = 3038000;
#else
static const int sealeddb_oldest_version_number = 3036000;
#endif

static inline int sealeddb_bind_text(sqlite3_stmt *stmt, int index, const void *bytes, sqlite3_uint64 count) {
    // SQLite binds NULL for a null pointer, and an empty buffer of Swift has a null pointer.
    return sqlite3_bind_text64(stmt, index, bytes ? bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Binds UTF-16 in the byte order of this machine. SQLite removes a byte order mark at the start.
static inline int sealeddb_bind_text16(sqlite3_stmt *stmt, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(stmt, index, bytes, count, SQLITE_TRANSIENT, SQLITE_UTF16);
}

static inline int sealeddb_bind_blob(sqlite3_stmt *stmt, int index, const void *bytes, sqlite3_uint64 count) {
    if (count == 0) return sqlite3_bind_zeroblob(stmt, index, 0);
    return sqlite3_bind_blob64(stmt, index, bytes, count, SQLITE_TRANSIENT);
}

// Binds without copying: the bytes must stay valid until the parameter is bound again.
static inline int sealeddb_bind_static_text(sqlite3_stmt *stmt, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(stmt, index, bytes, count, SQLITE_STATIC, SQLITE_UTF8);
}

static inline int sealeddb_bind_static_blob(sqlite3_stmt *stmt, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(stmt, index, bytes, count, SQLITE_STATIC);
}

// A value of the present row. The bytes of a text or blob are valid until the next step.
struct sealeddb_row_value {
    int type;
    const unsigned char *bytes;
    sqlite3_uint64 count;
    // An integer, or the bits of a number with a fraction.
    sqlite3_int64 number;
};

// Reads a value of the present row without conversion: texts in UTF-8, or if `utf16` is set, in the UTF-16 of this machine. The
// caller holds the mutex of the connection, or is alone on it: SQLite only allows a protected sqlite3_value here. Returns 0 if
// memory ran out. https://www.sqlite.org/c3ref/value.html
static inline int sealeddb_read_value(sqlite3_stmt *stmt, int column, int utf16, struct sealeddb_row_value *out) {
    sqlite3_value *value = sqlite3_column_value(stmt, column);
    out->type = sqlite3_value_type(value);
    out->bytes = 0;
    out->count = 0;
    out->number = 0;
    switch (out->type) {
    case SQLITE_INTEGER: out->number = sqlite3_value_int64(value); return 1;
    case SQLITE_FLOAT: {
        double number = sqlite3_value_double(value);
        __builtin_memcpy(&out->number, &number, sizeof number);  // Returns where it has copied to.
        return 1;
    }
    case SQLITE_TEXT:
        out->bytes = (const unsigned char *)(utf16 ? sqlite3_value_text16(value) : sqlite3_value_text(value));
        out->count = (sqlite3_uint64)(utf16 ? sqlite3_value_bytes16(value) : sqlite3_value_bytes(value));
        return out->bytes != 0;
    case SQLITE_BLOB:
        // The pointer of an empty blob is null.
        out->bytes = (const unsigned char *)sqlite3_value_blob(value);
        out->count = (sqlite3_uint64)sqlite3_value_bytes(value);
        return out->bytes != 0 || out->count == 0;
    default: return 1;
    }
}

// Writes the head of a value: its type, and the number itself, or the number of bytes that follow. Needs room for 9 bytes.
// Returns how many it has written.
static inline unsigned int sealeddb_write_head(const struct sealeddb_row_value *value, unsigned char *out) {
    out[0] = (unsigned char)value->type;
    if (value->type == SQLITE_NULL) return 1;
    int is_number = value->type == SQLITE_INTEGER || value->type == SQLITE_FLOAT;
    sqlite3_uint64 number = is_number ? (sqlite3_uint64)value->number : (sqlite3_uint64)value->count;
    for (int i = 0; i < 8; i++) out[1 + i] = (unsigned char)(number >> (8 * i));
    return 9;
}

// Writes the present row so that different rows have different bytes: the head of each value, what it holds, and 0xff. Returns
// how many bytes these are; -1 if there is no room for them, -2 if memory ran out. The caller holds the mutex, as above.
static inline sqlite3_int64 sealeddb_write_row(sqlite3_stmt *stmt, int columns, int utf16, unsigned char *out, sqlite3_uint64 room) {
    sqlite3_uint64 used = 0;
    for (int i = 0; i < columns; i++) {
        struct sealeddb_row_value value;
        if (!sealeddb_read_value(stmt, i, utf16, &value)) return -2;
        if (room - used < 10 || room - used - 10 < value.count) return -1;
        used += sealeddb_write_head(&value, out + used);
        // It returns where it has copied to.
        if (value.count > 0) __builtin_memcpy(out + used, value.bytes, (unsigned long)value.count);
        used += value.count;
    }
    if (used == room) return -1;
    out[used++] = 0xff;
    return (sqlite3_int64)used;
}

static inline void sealeddb_result_text(sqlite3_context *context, const char *bytes, sqlite3_uint64 count) {
    sqlite3_result_text64(context, bytes ? bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline void sealeddb_result_blob(sqlite3_context *context, const void *bytes, sqlite3_uint64 count) {
    if (count == 0) sqlite3_result_zeroblob(context, 0);
    else sqlite3_result_blob64(context, bytes, count, SQLITE_TRANSIENT);
}

// Returns the byte offset of the token that the last error refers to, or -1.
static inline int sealeddb_error_offset(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3038000
    return sqlite3_error_offset(db);
#else
    (void)db;
    return -1;
#endif
}

// These two only take effect before SQLite is initialized; afterwards they return SQLITE_MISUSE.
static inline int sealeddb_disable_uri_filenames(void) { return sqlite3_config(SQLITE_CONFIG_URI, 0); }
static inline int sealeddb_disable_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// Returns the open file of a database; SQLITE_NOTFOUND for a database without a file.
static inline int sealeddb_open_file(sqlite3 *db, const char *schema, sqlite3_file **file) {
    *file = 0;
    int rc = sqlite3_file_control(db, schema, SQLITE_FCNTL_FILE_POINTER, file);
    if (rc == SQLITE_OK && (*file == 0 || (*file)->pMethods == 0)) return SQLITE_NOTFOUND;
    return rc;
}

// Reads from the file of a database beneath the codec, through SQLite's own descriptor. Closing a second descriptor of
// the file would drop the POSIX locks that the process holds on it.
static inline int sealeddb_read_file(
    sqlite3 *db, const char *schema, void *buffer, int count, sqlite3_int64 offset
) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, schema, &file);
    if (rc != SQLITE_OK) return rc;
    return file->pMethods->xRead(file, buffer, count, offset);
}

// Writes to the file of a database, beneath the codec, the journal and the page cache.
static inline int sealeddb_write_file(
    sqlite3 *db, const char *schema, const void *buffer, int count, sqlite3_int64 offset
) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, schema, &file);
    if (rc != SQLITE_OK) return rc;
    return file->pMethods->xWrite(file, buffer, count, offset);
}

static inline int sealeddb_file_size(sqlite3 *db, const char *schema, sqlite3_int64 *size) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, schema, &file);
    if (rc != SQLITE_OK) return rc;
    return file->pMethods->xFileSize(file, size);
}

// Takes SQLite's shared lock on the file of "main", for a connection that is not reading. Then checks for a writer, as
// SQLite does before it rolls a journal back. Even if this fails, the lock may be held: always call
// sealeddb_unlock_after_look.
static inline int sealeddb_lock_to_look(sqlite3 *db, int *has_writer) {
    sqlite3_file *file;
    *has_writer = 1;
    int rc = sealeddb_open_file(db, "main", &file);
    if (rc == SQLITE_OK) rc = file->pMethods->xLock(file, SQLITE_LOCK_SHARED);
    if (rc == SQLITE_OK) rc = file->pMethods->xCheckReservedLock(file, has_writer);
    return rc;
}

static inline int sealeddb_unlock_after_look(sqlite3 *db) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, "main", &file);
    return rc == SQLITE_OK ? file->pMethods->xUnlock(file, SQLITE_LOCK_NONE) : rc;
}

// Sets `region` to the beginning of the index of the log of "main", which is shared memory; NULL if there is none.
static inline int sealeddb_log_index(sqlite3 *db, const volatile unsigned int **region) {
    sqlite3_file *file;
    void volatile *start = 0;
    *region = 0;
    int rc = sealeddb_open_file(db, "main", &file);
    if (rc != SQLITE_OK) return rc;
    if (file->pMethods->iVersion < 2) return SQLITE_NOTFOUND;
    rc = file->pMethods->xShmMap(file, 0, 32768, 0, &start);
    *region = (const volatile unsigned int *)start;
    // The index may be there only to be read.
    return rc == SQLITE_READONLY && start != 0 ? SQLITE_OK : rc;
}

// Whether, according to the WAL index of "main", all frames of the log are in the database file. This connection must
// have the log open. https://www.sqlite.org/walformat.html#the_wal_index_header
static inline int sealeddb_whole_log_is_in_file(sqlite3 *db, int *is_in_file) {
    const volatile unsigned int *words;
    int rc = sealeddb_log_index(db, &words);
    // Without a region, there is no log. words[16 / 4] is mxFrame, and words[96 / 4] is nBackfill.
    *is_in_file = rc == SQLITE_OK && (words == 0 || words[16 / 4] == words[96 / 4]);
    return rc;
}

// Sets `frames` to the number of frames in the write-ahead log that belong to committed transactions, as its index has
// it; 0 if there is no index.
static inline int sealeddb_log_frames(sqlite3 *db, sqlite3_int64 *frames) {
    const volatile unsigned int *words;
    int rc = sealeddb_log_index(db, &words);
    // mxFrame, as above.
    *frames = rc == SQLITE_OK && words != 0 ? words[16 / 4] : 0;
    return rc;
}

// What the index of a write-ahead log says of its committed transactions.
// https://www.sqlite.org/walformat.html#the_wal_index_header
struct sealeddb_log_position {
    int has_index;
    unsigned int change_count;     // iChange
    int is_big_endian;             // of the words that checksums add: bigEndCksum
    unsigned int frame_count;      // mxFrame
    unsigned int page_count;       // nPage
    unsigned int checksum[2];      // aFrameCksum, of the last of these frames
    unsigned char salts[8];        // aSalt, as the log has them
    unsigned int backfilled_count; // nBackfill: so many frames are in the database file
    unsigned int attempted_count;  // nBackfillAttempted: so many may be, as SQLite notes before it writes any of them
};

// Reads all of it as it was at one moment. The connection must be in a read transaction of "main". Returns
// SQLITE_PROTOCOL if it is being written all the time.
static inline int sealeddb_read_log_position(sqlite3 *db, struct sealeddb_log_position *position) {
    const volatile unsigned int *words;
    unsigned int first[12], second[12], again[12];
    *position = (struct sealeddb_log_position){0};
    int rc = sealeddb_log_index(db, &words);
    if (rc != SQLITE_OK || words == 0) return rc;
    for (int attempt = 0; attempt < 100; attempt++) {
        // A writer changes the second copy first. Who begins the log anew changes both before it sets nBackfill to 0.
        for (int i = 0; i < 12; i++) first[i] = words[i];
        __sync_synchronize();
        for (int i = 0; i < 12; i++) second[i] = words[12 + i];
        __sync_synchronize();
        unsigned int backfilled_count = words[24];
        __sync_synchronize();
        // In this order: if both are the same, nothing was being written when the second was read.
        unsigned int attempted_count = words[32];
        __sync_synchronize();
        for (int i = 0; i < 12; i++) again[i] = words[i];
        int is_same = 1;
        for (int i = 0; i < 12; i++) is_same &= first[i] == second[i] && first[i] == again[i];
        const unsigned char *bytes = (const unsigned char *)first;
        if (!is_same || bytes[12] == 0) continue;
        *position = (struct sealeddb_log_position){
            1, first[2], bytes[13], first[4], first[5], {first[6], first[7]}, {0}, backfilled_count,
            attempted_count};
        for (int i = 0; i < 8; i++) position->salts[i] = bytes[32 + i];
        return SQLITE_OK;
    }
    return SQLITE_PROTOCOL;
}

// Returns the open write-ahead log of "main"; SQLITE_NOTFOUND if this connection has none open.
static inline int sealeddb_open_log(sqlite3 *db, sqlite3_file **log) {
    *log = 0;
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, log);
    if (rc == SQLITE_OK && (*log == 0 || (*log)->pMethods == 0)) return SQLITE_NOTFOUND;
    return rc;
}

static inline int sealeddb_log_size(sqlite3 *db, sqlite3_int64 *size) {
    sqlite3_file *log;
    int rc = sealeddb_open_log(db, &log);
    return rc == SQLITE_OK ? log->pMethods->xFileSize(log, size) : rc;
}

static inline int sealeddb_write_log(sqlite3 *db, const void *buffer, int count, sqlite3_int64 offset) {
    sqlite3_file *log;
    int rc = sealeddb_open_log(db, &log);
    return rc == SQLITE_OK ? log->pMethods->xWrite(log, buffer, count, offset) : rc;
}

static inline int sealeddb_truncate_log(sqlite3 *db, sqlite3_int64 size) {
    sqlite3_file *log;
    int rc = sealeddb_open_log(db, &log);
    return rc == SQLITE_OK ? log->pMethods->xTruncate(log, size) : rc;
}

static inline int sealeddb_sync_log(sqlite3 *db) {
    sqlite3_file *log;
    int rc = sealeddb_open_log(db, &log);
    return rc == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : rc;
}

// Takes SQLite's shared lock on the file of "main", and leaves it to the connection, which has it from its next read on.
// Then opens the index of the log, so that its locks can be taken before SQLite itself has opened the log.
static inline int sealeddb_open_log_index(sqlite3 *db) {
    sqlite3_file *file;
    const volatile unsigned int *words;
    int rc = sealeddb_open_file(db, "main", &file);
    if (rc == SQLITE_OK) rc = file->pMethods->xLock(file, SQLITE_LOCK_SHARED);
    return rc == SQLITE_OK ? sealeddb_log_index(db, &words) : rc;
}

// Lets go of the index, if SQLite has not opened the log: then nobody else would when the connection is closed, and its
// descriptor and its lock would stay. Call it only right before closing.
static inline int sealeddb_close_log_index(sqlite3 *db) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, "main", &file);
    return rc == SQLITE_OK && file->pMethods->iVersion >= 2 ? file->pMethods->xShmUnmap(file, 0) : rc;
}

// Takes or gives back the lock that whoever writes to the log has: WAL_WRITE_LOCK.
// https://www.sqlite.org/walformat.html#wal_locks
static inline int sealeddb_lock_log(sqlite3 *db, int takes) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, "main", &file);
    if (rc != SQLITE_OK) return rc;
    if (file->pMethods->iVersion < 2) return SQLITE_NOTFOUND;
    return file->pMethods->xShmLock(file, 0, 1, (takes ? SQLITE_SHM_LOCK : SQLITE_SHM_UNLOCK) | SQLITE_SHM_EXCLUSIVE);
}

// Adds a frame to the hash table of its block of the index. A block has 32768 bytes: page numbers, and then 8192 slots
// with the places of these, from 1. The first block begins with 136 bytes of other things.
// https://www.sqlite.org/walformat.html#wal_index_hash_table_blocks
static inline int sealeddb_add_to_log_index(sqlite3_file *file, unsigned int frame, unsigned int page) {
    const unsigned int first_count = 4062, count = 4096, slot_count = 8192;
    unsigned int block = (frame + count - first_count - 1) / count;
    void volatile *start = 0;
    int rc = file->pMethods->xShmMap(file, (int)block, 32768, 1, &start);
    if (rc != SQLITE_OK) return rc;
    if (start == 0) return SQLITE_IOERR_SHMMAP;
    volatile unsigned int *pages = (volatile unsigned int *)start + (block == 0 ? 34 : 0);
    volatile unsigned short *slots = (volatile unsigned short *)((volatile char *)start + 16384);
    unsigned int capacity = block == 0 ? first_count : count;
    unsigned int index = block == 0 ? frame : frame - first_count - (block - 1) * count;
    // What a writer has left that did not come to its end is not read by anybody, as it lies behind the last frame.
    if (index == 1) {
        for (unsigned int i = 0; i < capacity; i++) pages[i] = 0;
        for (unsigned int i = 0; i < slot_count; i++) slots[i] = 0;
    } else if (pages[index - 1] != 0) {
        for (unsigned int i = 0; i < slot_count; i++) if (slots[i] >= index) slots[i] = 0;
        for (unsigned int i = index - 1; i < capacity; i++) pages[i] = 0;
    }
    unsigned int slot = (page * 383u) % slot_count, tries = slot_count;
    while (slots[slot] != 0 && --tries > 0) slot = (slot + 1) % slot_count;
    if (tries == 0) return SQLITE_CORRUPT;
    pages[index - 1] = page;
    __sync_synchronize();
    slots[slot] = (unsigned short)index;
    return SQLITE_OK;
}

// What a writer has added to the log.
struct sealeddb_log_addition {
    unsigned int first;       // So many frames came before.
    unsigned int count;
    unsigned int page_count;  // Pages of the database after it.
    unsigned int page_size;
    unsigned int checksum[2]; // That of the last frame, and
    unsigned char salts[8];   // those of all, as the log has them.
};

// Tells all connections of frames that were written to the log and synced, in the way in which a writer of SQLite does: it
// adds them to the index, and then changes its header. The caller has the lock of writers.
static inline int sealeddb_publish_frames(
    sqlite3 *db, const struct sealeddb_log_addition *addition, const unsigned int *pages
) {
    sqlite3_file *file;
    int rc = sealeddb_open_file(db, "main", &file);
    for (unsigned int i = 0; rc == SQLITE_OK && i < addition->count; i++) {
        rc = sealeddb_add_to_log_index(file, addition->first + i + 1, pages[i]);
    }
    void volatile *start = 0;
    if (rc == SQLITE_OK) rc = file->pMethods->xShmMap(file, 0, 32768, 1, &start);
    if (rc != SQLITE_OK) return rc;
    if (start == 0) return SQLITE_IOERR_SHMMAP;
    volatile unsigned int *words = (volatile unsigned int *)start;
    unsigned int header[12] = {3007000, 0, words[2] + 1};
    unsigned char *bytes = (unsigned char *)header;
    // isInit; bigEndCksum stays 0: checksums of the log add little-endian words.
    bytes[12] = 1;
    unsigned short page_size = (unsigned short)((addition->page_size & 0xff00) | (addition->page_size >> 16));
    for (int i = 0; i < 2; i++) bytes[14 + i] = ((const unsigned char *)&page_size)[i];
    header[4] = addition->first + addition->count;
    header[5] = addition->page_count;
    for (int i = 0; i < 2; i++) header[6 + i] = addition->checksum[i];
    for (int i = 0; i < 8; i++) bytes[32 + i] = addition->salts[i];
    for (int i = 0; i < 10; i += 2) {
        header[10] += header[i] + header[11];
        header[11] += header[i + 1] + header[10];
    }
    for (int i = 0; i < 12; i++) words[12 + i] = header[i];
    file->pMethods->xShmBarrier(file);
    for (int i = 0; i < 12; i++) words[i] = header[i];
    file->pMethods->xShmBarrier(file);
    return SQLITE_OK;
}

// Sets whether closing the last connection checkpoints the write-ahead log and deletes it.
static inline int sealeddb_set_checkpoint_on_close(sqlite3 *db, int on) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, (int *)0);
}

// Sets a boolean option of sqlite3_db_config, or queries it with -1. Returns SQLITE_ERROR for an unknown option.
static inline int sealeddb_switch(sqlite3 *db, int number, int on, int *value) {
    return sqlite3_db_config(db, number, on, value);
}

// Sets `moved` to 1 if the path of "main" no longer names the file that this connection has open.
static inline int sealeddb_main_file_has_moved(sqlite3 *db, int *moved) {
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, moved);
}

// Returns a database whose open transaction has written to a file that its path no longer names; NULL if there is none.
// Before SQLite 3.39, only "main" is checked. https://www.sqlite.org/c3ref/txn_state.html
static inline const char *sealeddb_moved_schema(sqlite3 *db) {
#if SQLITE_VERSION_NUMBER >= 3039000
    const char *schema;
    for (int i = 0; (schema = sqlite3_db_name(db, i)) != 0; i++) {
        // Database 1 is the one for temporary tables.
        if (i == 1 || sqlite3_txn_state(db, schema) != SQLITE_TXN_WRITE) continue;
#else
    const char *schema = "main";
    {
#endif
        int moved = 0;
        // A database in memory has no file that could be moved.
        if (sqlite3_file_control(db, schema, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved) return schema;
    }
    return 0;
}

// Returns the FTS5 API of this connection; NULL if any of the calls fails.
// https://www.sqlite.org/fts5.html#extending_fts5
static inline fts5_api *sealeddb_fts5_api(sqlite3 *db) {
    fts5_api *api = 0;
    sqlite3_stmt *stmt = 0;
    if (sqlite3_prepare_v3(db, "SELECT fts5(?1)", -1, 0, &stmt, 0) == SQLITE_OK) {
        // The pointer shows whether both calls succeeded.
        sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", 0);
        sqlite3_step(stmt);
    }
    // The result repeats the error of the step.
    sqlite3_finalize(stmt);
    return api;
}

// The answer to a question about the contents of a file; unknown if the file could not be read.
enum sealeddb_answer { sealeddb_no, sealeddb_yes, sealeddb_unknown };

// Whether a part of a file contains only zeros.
static inline enum sealeddb_answer sealeddb_holds_zeros(
    sqlite3_file *file, sqlite3_int64 offset, unsigned char *buffer, int size
) {
    int code = file->pMethods->xRead(file, buffer, size, offset);
    if (code == SQLITE_IOERR_SHORT_READ) return sealeddb_no;
    if (code != SQLITE_OK) return sealeddb_unknown;
    for (int i = 0; i < size; i++) if (buffer[i] != 0) return sealeddb_no;
    return sealeddb_yes;
}

// Whether the write-ahead log contains a frame of this page that is all zeros.
// https://www.sqlite.org/fileformat.html#walformat
static inline enum sealeddb_answer sealeddb_log_holds_zeros(
    sqlite3_file *log, unsigned int page, unsigned char *buffer, int page_size
) {
    unsigned char header[32], frame[24];
    sqlite3_int64 size = 0;
    if (log->pMethods->xFileSize(log, &size) != SQLITE_OK) return sealeddb_unknown;
    if (size < 32) return sealeddb_no;
    int code = log->pMethods->xRead(log, header, 32, 0);
    // Another process may have truncated the log in the meantime.
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? sealeddb_no : sealeddb_unknown;
    if (header[0] != 0x37 || header[1] != 0x7f || header[2] != 0x06) return sealeddb_no;
    for (sqlite3_int64 start = 32; start + 24 + page_size <= size; start += 24 + page_size) {
        code = log->pMethods->xRead(log, frame, 24, start);
        if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? sealeddb_no : sealeddb_unknown;
        // A different salt: this frame and those after it are left from an earlier log.
        for (int i = 0; i < 8; i++) if (frame[8 + i] != header[16 + i]) return sealeddb_no;
        unsigned int number = (unsigned int)frame[0] << 24 | frame[1] << 16 | frame[2] << 8 | frame[3];
        if (number != page) continue;
        enum sealeddb_answer answer = sealeddb_holds_zeros(log, start + 24, buffer, page_size);
        if (answer != sealeddb_no) return answer;
    }
    return sealeddb_no;
}

// Whether a database file of the connection, or its log, contains this page as zeros throughout. A page that was
// written with a key is never all zeros. A file with the methods `keyless` has no key: it may hold zeros anywhere, and pages of
// another size. Before 3.39, SQLite cannot list the databases of a connection, and the answer is no.
static inline enum sealeddb_answer sealeddb_stored_as_zeros(
    sqlite3 *db, unsigned int page, int page_size, const sqlite3_io_methods *keyless
) {
#if SQLITE_VERSION_NUMBER >= 3039000
    unsigned char *buffer = (unsigned char *)sqlite3_malloc(page_size);
    if (buffer == 0) return sealeddb_unknown;
    enum sealeddb_answer answer = sealeddb_no;
    const char *schema;
    for (int i = 0; answer == sealeddb_no && (schema = sqlite3_db_name(db, i)) != 0; i++) {
        sqlite3_file *file, *log = 0;
        sqlite3_int64 size = 0, offset = (sqlite3_int64)(page - 1) * page_size;
        // A database in memory has no file.
        if (sealeddb_open_file(db, schema, &file) != SQLITE_OK || file->pMethods == keyless) continue;
        if (file->pMethods->xFileSize(file, &size) != SQLITE_OK) answer = sealeddb_unknown;
        else if (offset + page_size <= size) answer = sealeddb_holds_zeros(file, offset, buffer, page_size);
        if (answer != sealeddb_no
            || sqlite3_file_control(db, schema, SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK) continue;
        if (log != 0 && log->pMethods != 0) answer = sealeddb_log_holds_zeros(log, page, buffer, page_size);
    }
    sqlite3_free(buffer);
    return answer;
#else
    (void)db; (void)page; (void)page_size; (void)keyless;
    return sealeddb_no;
#endif
}

static inline int sealeddb_knows_database_names(void) { return SQLITE_VERSION_NUMBER >= 3039000; }

static inline const void *sealeddb_address_of_open(void) { return (const void *)&sqlite3_open_v2; }
static inline const void *sealeddb_address_of_prepare(void) { return (const void *)&sqlite3_prepare_v3; }
static inline const void *sealeddb_address_of_step(void) { return (const void *)&sqlite3_step; }
static inline const void *sealeddb_address_of_compileoption_used(void) {
    return (const void *)&sqlite3_compileoption_used;
}

#endif
