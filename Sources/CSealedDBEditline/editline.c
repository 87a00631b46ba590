#define _GNU_SOURCE
#include "CSealedDBEditline.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

// The interface of libedit, as editline(3) describes it. It has been the same since 2016.

typedef struct editline EditLine;
typedef struct history History;
typedef struct { int number; const char *text; } HistEvent;
typedef struct { const char *buffer; const char *cursor; const char *end; } LineInfo;

enum { EL_PROMPT = 0, EL_EDITOR = 2, EL_BIND = 4, EL_ADDFN = 9, EL_HIST = 10, EL_GETCFN = 13 };
enum { EL_PREP_TERM = 16, EL_REFRESH = 20 };
enum { H_SETSIZE = 1, H_ENTER = 10, H_SETUNIQUE = 20 };
enum { CC_REFRESH = 4, CC_REDISPLAY = 8 };

static struct {
    EditLine *(*el_init)(const char *, FILE *, FILE *, FILE *);
    void (*el_end)(EditLine *);
    int (*el_set)(EditLine *, int, ...);
    int (*el_source)(EditLine *, const char *);
    const char *(*el_gets)(EditLine *, int *);
    const LineInfo *(*el_line)(EditLine *);
    int (*el_insertstr)(EditLine *, const char *);
    void (*el_deletestr)(EditLine *, int);
    void (*el_resize)(EditLine *);
    void (*el_beep)(EditLine *);
    History *(*history_init)(void);
    void (*history_end)(History *);
    int (*history)(History *, HistEvent *, int, ...);
} library;

static struct {
    EditLine *editor;
    History *history;
    sealeddb_editline_completer completer;
    const char *prompt;
    int wake;
    bool was_interrupted;
    mbstate_t state;
} session;

static bool load(void) {
    // Never unloaded: it is used until the process ends.
    void *handle = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) handle = dlopen("libedit.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return false;
    struct { void *place; const char *name; } const functions[] = {
        {&library.el_init, "el_init"}, {&library.el_end, "el_end"}, {&library.el_set, "el_set"},
        {&library.el_source, "el_source"}, {&library.el_gets, "el_gets"}, {&library.el_line, "el_line"},
        {&library.el_insertstr, "el_insertstr"}, {&library.el_deletestr, "el_deletestr"},
        {&library.el_resize, "el_resize"}, {&library.el_beep, "el_beep"},
        {&library.history_init, "history_init"}, {&library.history_end, "history_end"}, {&library.history, "history"},
    };
    for (size_t index = 0; index < sizeof functions / sizeof *functions; index++) {
        void *function = dlsym(handle, functions[index].name);
        if (function == NULL) return false;
        // POSIX wants function pointers to have the form of data pointers.
        memcpy(functions[index].place, &function, sizeof function);
    }
    return true;
}

static char *prompt(EditLine *editor) {
    (void)editor;
    return (char *)session.prompt;
}

// While a line is edited, these signals are taken through a pipe: the terminal must get its own state back first. libedit's
// own handlers would send them to the whole group of processes.

static const int signals[] = {SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals };
static struct sigaction former[SIGNAL_COUNT];
static int signal_pipe[2] = {-1, -1};

static void note_signal(int number) {
    int error = errno;
    unsigned char byte = (unsigned char)number;
    // A pipe that is full wakes its reader as well.
    (void)write(signal_pipe[1], &byte, 1);
    errno = error;
}

static void take_signal(int index) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    // These fail only for numbers that are no signals.
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signals[index], &action, &former[index]);
    // Whoever started the process with a signal ignored wants it so.
    if (former[index].sa_handler == SIG_IGN) (void)sigaction(signals[index], &former[index], NULL);
}

static void give_signals_back(void) {
    // As above.
    for (int index = 0; index < SIGNAL_COUNT; index++) (void)sigaction(signals[index], &former[index], NULL);
}

static bool take_signals(void) {
    if (signal_pipe[0] < 0) {
        if (pipe(signal_pipe) != 0) return false;
        // A handler must not wait. This fails only for a descriptor that is not open.
        (void)fcntl(signal_pipe[1], F_SETFL, O_NONBLOCK);
    }
    for (int index = 0; index < SIGNAL_COUNT; index++) take_signal(index);
    return true;
}

/// Does what a signal means: the process ends, or stops and goes on.
static void follow_signal(EditLine *editor) {
    unsigned char number;
    if (read(signal_pipe[0], &number, 1) != 1) return;
    if (number == SIGWINCH) {
        library.el_resize(editor);
    } else {
        // If the terminal cannot be set, the signal still has to be followed.
        (void)library.el_set(editor, EL_PREP_TERM, 0);
        give_signals_back();
        // To this process alone. It fails only for a number that is no signal.
        (void)raise(number);
        for (int index = 0; index < SIGNAL_COUNT; index++) take_signal(index);
        // As above.
        (void)library.el_set(editor, EL_PREP_TERM, 1);
    }
    // A line that is not drawn again is still there.
    (void)library.el_set(editor, EL_REFRESH);
}

/// Reads the next character, of one to four bytes. Unlike libedit's own, this ends when the caller is to be woken.
static int next_character(EditLine *editor, wchar_t *character) {
    for (;;) {
        struct pollfd sources[3] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = session.wake, .events = POLLIN},
            {.fd = signal_pipe[0], .events = POLLIN},
        };
        if (poll(sources, 3, -1) < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        if (sources[1].revents != 0) {
            session.was_interrupted = true;
            return -1;
        }
        if (sources[2].revents != 0) {
            follow_signal(editor);
            continue;
        }
        char byte;
        ssize_t count = read(STDIN_FILENO, &byte, 1);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return (int)count;
        bool was_within = !mbsinit(&session.state);
        size_t result = mbrtowc(character, &byte, 1, &session.state);
        if (result == (size_t)-1) {
            // Not UTF-8: what came of the character is left out, and told. This byte may begin another one.
            library.el_beep(editor);
            memset(&session.state, 0, sizeof session.state);
            if (was_within) result = mbrtowc(character, &byte, 1, &session.state);
        }
        if (result == (size_t)-1) memset(&session.state, 0, sizeof session.state);
        if (result != (size_t)-1 && result != (size_t)-2) return 1;
    }
}

static unsigned char complete(EditLine *editor, int key) {
    (void)key;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    // In pasted text a tab is a tab.
    if (poll(&input, 1, 0) > 0) {
        // If the line is full, it stays as it is.
        (void)library.el_insertstr(editor, "\t");
        return CC_REFRESH;
    }
    const LineInfo *line = library.el_line(editor);
    bool has_printed = session.completer(
        line->buffer, (size_t)(line->end - line->buffer), (size_t)(line->cursor - line->buffer));
    return has_printed ? CC_REDISPLAY : CC_REFRESH;
}

bool sealeddb_editline_start(const char *program, int history_size, sealeddb_editline_completer completer) {
    if (session.editor != NULL || !load()) return false;
    session.editor = library.el_init(program, stdin, stdout, stderr);
    if (session.editor == NULL) return false;
    session.history = library.history_init();
    HistEvent event;
    if (session.history == NULL || library.history(session.history, &event, H_SETSIZE, history_size) < 0
        || library.el_set(session.editor, EL_PROMPT, prompt) != 0
        || library.el_set(session.editor, EL_EDITOR, "emacs") != 0
        || library.el_set(session.editor, EL_HIST, library.history, session.history) != 0
        || library.el_set(session.editor, EL_GETCFN, next_character) != 0
        || library.el_set(session.editor, EL_ADDFN, "sealdb-complete", "Complete a word", complete) != 0) {
        sealeddb_editline_end();
        return false;
    }
    session.completer = completer;
    // A key that cannot be bound keeps its former meaning, and a history may repeat a line.
    (void)library.history(session.history, &event, H_SETUNIQUE, 1);
    (void)library.el_set(session.editor, EL_BIND, "^I", "sealdb-complete", NULL);
    (void)library.el_set(session.editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    (void)library.el_set(session.editor, EL_BIND, "^W", "ed-delete-prev-word", NULL);
    // Most users have no .editrc.
    (void)library.el_source(session.editor, NULL);
    // In vi's mode this key would write the line to a file for an editor.
    (void)library.el_set(session.editor, EL_BIND, "-a", "v", "ed-unassigned", NULL);
    return true;
}

enum sealeddb_editline_end sealeddb_editline_read(const char *prompt, int wake, const char **line, size_t *length) {
    session.prompt = prompt;
    session.wake = wake;
    session.was_interrupted = false;
    memset(&session.state, 0, sizeof session.state);
    // Without the pipe a signal leaves the terminal as it is.
    bool takes_signals = take_signals();
    int count = 0;
    const char *text = library.el_gets(session.editor, &count);
    if (takes_signals) give_signals_back();
    if (session.was_interrupted) return SEALEDDB_EDITLINE_INTERRUPTED;
    if (text == NULL || count <= 0) return SEALEDDB_EDITLINE_END_OF_INPUT;
    *line = text;
    *length = strlen(text);
    return SEALEDDB_EDITLINE_LINE;
}

void sealeddb_editline_remember(const char *line) {
    HistEvent event;
    // Without memory for it, the line is only not brought back.
    (void)library.history(session.history, &event, H_ENTER, line);
}

void sealeddb_editline_replace(size_t deleted, const char *inserted) {
    if (deleted > 0) library.el_deletestr(session.editor, (int)deleted);
    // If the line is full, it stays as it is.
    if (*inserted != 0) (void)library.el_insertstr(session.editor, inserted);
}

void sealeddb_editline_end(void) {
    if (session.editor != NULL) library.el_end(session.editor);
    if (session.history != NULL) library.history_end(session.history);
    memset(&session, 0, sizeof session);
}
