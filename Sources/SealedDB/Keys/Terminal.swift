internal import CSealedDBSystem
import Foundation

/// Asks people for passphrases.
enum Terminal {
    /// Lets one prompt run at a time, because the signals that a prompt catches are those of the whole process.
    private static let turn = NSLock()

    static func passphrase(prompt: String, confirm: Bool) throws(DatabaseError) -> Key {
        let terminal = sealeddb_open("/dev/tty", O_RDWR | O_NOCTTY, 0)
        guard terminal >= 0 else {
            throw .system("There is no terminal to ask for the passphrase", reason: .noSuchFile)
        }
        // The result does not matter: a terminal does not have to store anything.
        defer { Glibc.close(terminal) }
        turn.lock()
        defer { turn.unlock() }
        let first = try passphrase(from: terminal, prompt: prompt)
        guard confirm else { return first }
        let second = try passphrase(from: terminal, prompt: "\(prompt)again: ")
        guard first == second else { throw .malformedKey("The two passphrases differ.") }
        return first
    }

    private static func passphrase(from terminal: Int32, prompt: String) throws(DatabaseError) -> Key {
        try KeyFile.passphrase(in: line(from: terminal, prompt: prompt), name: "The passphrase from the terminal")
    }

    /// Reads one line. Asks for it again after the program was stopped and continued.
    private static func line(from terminal: Int32, prompt: String) throws(DatabaseError) -> SecretBytes {
        while true {
            let (line, signal) = try attempt(terminal, prompt)
            // The echo is on again, and the program's own handlers are restored. They get the signal now.
            if let signal { try pass(on: signal) }
            if let line { return line }
        }
    }

    /// Lets the signal have the effect that it would have had without a prompt: it ends the program, stops it, or runs
    /// its handler.
    private static func pass(on signal: Int32) throws(DatabaseError) {
        // Whoever continued the program may have changed the terminal, so the prompt begins again. Nothing else is
        // needed.
        guard signal != SIGCONT else { return }
        var wanted = sigset_t()
        // These calls cannot fail with a valid signal number.
        sigemptyset(&wanted)
        sigaddset(&wanted, signal)
        // This cannot fail with SIG_UNBLOCK.
        pthread_sigmask(SIG_UNBLOCK, &wanted, nil)
        // Sent to this thread, so that a stopped program does not get any further. Fails only for an invalid signal
        // number.
        raise(signal)
        guard signal != SIGTSTP else { return }
        throw DatabaseError(
            extendedCode: SQLITE_INTERRUPT,
            reason: .interrupted,
            message: "Interrupted at the prompt. Nothing was changed."
        )
    }

    /// Reads one line with the echo off. Returns the signal instead, if one comes first.
    private static func attempt(
        _ terminal: Int32,
        _ prompt: String
    ) throws(DatabaseError) -> (line: SecretBytes?, signal: Int32?) {
        var original = termios()
        guard tcgetattr(terminal, &original) == 0 else {
            throw .system("Cannot turn the terminal's echo off", reason: .ioError)
        }
        // The default actions of these signals would end the program and leave the terminal without echo.
        let signals = sealeddb_catch_signals()
        guard signals >= 0 else { throw .system("Cannot look out for signals", reason: .ioError) }
        defer { sealeddb_release_signals() }
        var silent = original
        silent.c_lflag &= ~tcflag_t(ECHO)
        guard set(terminal, &silent) else {
            throw .system("Cannot turn the terminal's echo off", reason: .ioError)
        }
        // If this fails, the terminal is gone, and its echo with it.
        defer { _ = set(terminal, &original) }
        say(prompt, to: terminal)
        defer { say("\n", to: terminal) }
        var signal: Int32?
        let line = try SecretBytes(capacity: KeyFile.sizeLimit + 1) { target throws(DatabaseError) in
            var count = 0
            while count < target.count {
                signal = try awaitInput(terminal, signals)
                if signal != nil { return 0 }
                let got = read(terminal, target.baseAddress! + count, 1)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { throw .malformedKey("The terminal was closed before the passphrase ended.") }
                if target[count] == UInt8(ascii: "\n") { return count }
                count += 1
            }
            throw .malformedKey("The passphrase is longer than \(KeyFile.sizeLimit) bytes.")
        }
        return signal == nil ? (line, nil) : (nil, signal)
    }

    /// Waits for input, and returns `nil`, or for a signal, which it returns.
    private static func awaitInput(_ terminal: Int32, _ signals: Int32) throws(DatabaseError) -> Int32? {
        while true {
            var descriptors = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: terminal, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&descriptors, 2, -1) >= 0 else {
                if errno == EINTR { continue }
                throw .system("Cannot wait for the passphrase", reason: .ioError)
            }
            if descriptors[0].revents != 0 {
                var number: UInt8 = 0
                guard read(signals, &number, 1) == 1 else { continue }
                return Int32(number)
            }
            if descriptors[1].revents != 0 { return nil }
        }
    }

    /// Sets the attributes. Discards what was typed before.
    private static func set(_ terminal: Int32, _ attributes: inout termios) -> Bool {
        while tcsetattr(terminal, TCSAFLUSH, &attributes) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }

    private static func say(_ text: String, to terminal: Int32) {
        // If the text cannot be shown, the passphrase can still be typed.
        _ = text.withCString { write(terminal, $0, strlen($0)) }
    }
}
