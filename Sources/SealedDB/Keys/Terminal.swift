import Foundation

/// Passphrases from people.
enum Terminal {
    static func passphrase(prompt: String, confirm: Bool) throws(DatabaseError) -> Key {
        let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0 else {
            throw .system("There is no terminal to ask for the passphrase", reason: .noSuchFile)
        }
        defer { Glibc.close(terminal) }
        let first = try passphrase(from: terminal, prompt: prompt)
        guard confirm else { return first }
        let second = try passphrase(from: terminal, prompt: "\(prompt)again: ")
        guard first == second else { throw .malformedKey("The two passphrases differ.") }
        return first
    }

    private static func passphrase(from terminal: Int32, prompt: String) throws(DatabaseError) -> Key {
        try KeyFile.passphrase(in: line(from: terminal, prompt: prompt), name: "The passphrase from the terminal")
    }

    /// One line, with the echo off meanwhile; also restored when a signal ends the wait.
    private static func line(from terminal: Int32, prompt: String) throws(DatabaseError) -> SecretBytes {
        var original = termios()
        guard tcgetattr(terminal, &original) == 0 else {
            throw .system("Cannot turn the terminal's echo off", reason: .ioError)
        }
        var silent = original
        silent.c_lflag &= ~tcflag_t(ECHO)
        // Signals wait until the echo is back on: the handler's default would leave the terminal silent.
        var blocked = sigset_t()
        var before = sigset_t()
        sigemptyset(&blocked)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP] { sigaddset(&blocked, signal) }
        silent.c_lflag &= ~tcflag_t(ISIG)
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer {
            tcsetattr(terminal, TCSAFLUSH, &original)
            pthread_sigmask(SIG_SETMASK, &before, nil)
        }
        say(prompt, to: terminal)
        defer { say("\n", to: terminal) }
        return try SecretBytes(capacity: KeyFile.sizeLimit + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                let got = read(terminal, target.baseAddress! + count, 1)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { throw .malformedKey("The terminal was closed before the passphrase ended.") }
                switch target[count] {
                case UInt8(ascii: "\n"): return count
                case 3, 28: throw DatabaseError(extendedCode: SQLITE_INTERRUPT, message: "Interrupted at the prompt.")
                default: count += 1
                }
            }
            throw .malformedKey("The passphrase is longer than \(KeyFile.sizeLimit) bytes.")
        }
    }

    private static func say(_ text: String, to terminal: Int32) {
        _ = text.withCString { write(terminal, $0, strlen($0)) }
    }
}
