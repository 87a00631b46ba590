#ifndef CSEALEDDB_EDITLINE_H
#define CSEALEDDB_EDITLINE_H

#include <stdbool.h>
#include <stddef.h>

// Lines from a terminal, edited by the system's libedit: https://www.thrysoee.dk/editline/, editline(3).
//
// The library is loaded when it is first needed. So the command starts without it, and runs where it is not installed.
// A process has one editor, which only one thread uses.

/// What is asked when the user wants a word completed. `line` has `length` bytes, of which `cursor` stand before the
/// cursor. It calls sealeddb_editline_replace to change the line.
/// Returns whether it has printed something, so that the line must be drawn again.
typedef bool (*sealeddb_editline_completer)(const char *line, size_t length, size_t cursor);

/// Prepares the editor. Returns whether there is one: whether the system has libedit and knows the terminal.
bool sealeddb_editline_start(const char *program, int history_size, sealeddb_editline_completer completer);

/// How a line was ended.
enum sealeddb_editline_end {
    SEALEDDB_EDITLINE_LINE,
    SEALEDDB_EDITLINE_END_OF_INPUT,
    /// `wake` had something to read.
    SEALEDDB_EDITLINE_INTERRUPTED,
};

/// Reads a line. `*line` is valid until the next call, and ends with a newline if it was not cut off.
/// `wake` is a descriptor that ends the wait for input when it can be read; the caller empties it.
enum sealeddb_editline_end sealeddb_editline_read(const char *prompt, int wake, const char **line, size_t *length);

/// Adds a line to those that the arrow keys bring back, if it is not the last one already.
void sealeddb_editline_remember(const char *line);

/// Deletes so many bytes before the cursor, and inserts a text. Only within a completer.
void sealeddb_editline_replace(size_t deleted, const char *inserted);

/// Puts the terminal back into its former state.
void sealeddb_editline_end(void);

#endif
