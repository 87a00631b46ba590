import ArgumentParser
import CSealedDBSystem
import Foundation
import SealedDB

@main
struct SealdbCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sealdb",
        abstract: "Encrypted SQLite stores: create, fill, query, verify, back up them, and change their keys.",
        discussion: """
            A store is a SQLCipher 4 file; the stock sqlcipher shell opens it with the same key. A key comes from a \
            file, a systemd credential, a program, a file descriptor, a key ring or a prompt, never from the command \
            line. The environment may name a file, and a configuration file a source for each store: see "sealdb help \
            config". Of those that are given, an option outranks the environment, and that the configuration.

              sealdb keygen app.key
              sealdb create app.db --key-file app.key
              sealdb import app.db people people.csv --key-file app.key
              sealdb query app.db 'SELECT * FROM people WHERE age > ?' 40 --key-file app.key
              sealdb rotate app.db --key-file app.key --new-key-file new.key

            Results go to standard output, messages and progress to standard error.

            ENVIRONMENT
              SEALDB_CONFIG           the configuration file; /dev/null for none
              SEALDB_KEY_FILE         the file with the key, as --key-file
              SEALDB_KEY_RING         the key ring, as --key-ring
              SEALDB_PASSPHRASE_FILE  the file with the passphrase, as --passphrase-file
              SEALDB_HISTORY          the file for the history of the shell; empty for none
              CREDENTIALS_DIRECTORY   where systemd puts the credentials of a service
              JOURNAL_STREAM          set by systemd: if standard error is its journal, each line begins with its
                                      priority, <3> for errors and <4> for warnings
              TMPDIR                  where a backup from or to a pipe, or a store that snapshots verifies, lies
                                      meanwhile, encrypted

            FILES
              /etc/sealdb/sealdb.conf       the configuration file, if no other is named
              ~/.local/state/sealdb/history  the history of the shell
              sealdb-rotate.journal         the journal of a batch of rotations
              STORE-wal, STORE-journal      what a store in use has not yet in its own file; belongs to the store
              STORE.slots, STORE.slots.2    the key slots of a store that has some, twice; belong to the store
              STORE.slots.kept-…            what lay there and did not belong to the store
              STORE-sealdb-lock             tells other processes that a store is in use; may stay
              .STORE.sealdb-…               left by a command that was killed; the next one removes it

            EXIT STATUS
              0   done
              1   different: diff has found differences, keyring audit a key that is not the active one, or status
                  something that is due
              2   partial: of several stores some failed, and --continue-on-error was given; or import rejected rows;
                  or not everything could be recovered
              64  usage: wrong arguments or options
              65  data: damaged, malformed, not a store, bad CSV, or SQL that the database rejects
              66  no input: the store, key file or input file is missing or unreadable
              69  unavailable: the source of a key failed, or gave another key the second time; or PostgreSQL cannot be
                  reached
              70  software: an internal error; the store is unchanged
              73  the output exists already, or cannot be created
              74  input or output failed, or no space is left
              75  busy: another process has the store locked; try again later
              77  wrong key, or the store needs a key
              78  configuration: unsafe key file or configuration file, wrong library, unsupported in this build
              129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM
            """,
        subcommands: [
            KeygenCommand.self, KeyringCommand.self, SlotsCommand.self, CreateCommand.self, EncryptCommand.self,
            ImportCommand.self,
            QueryCommand.self, ExecCommand.self, ShellCommand.self, TablesCommand.self, SchemaCommand.self,
            DumpCommand.self,
            DiffCommand.self, InfoCommand.self, VerifyCommand.self, RotateCommand.self, StatusCommand.self,
            MigrateCommand.self, BackupCommand.self, RestoreCommand.self, ReplicateCommand.self, SnapshotsCommand.self,
            FollowCommand.self,
            RecoverCommand.self, DecryptCommand.self, ExportCommand.self,
            DoctorCommand.self, ConfigCommand.self,
        ]
    )

    // A flag of its own, because the parser's version text would start the engine for every command.
    @Flag(name: .long, help: "Print the versions of sealdb, SQLite and SQLCipher.")
    var version = false

    func run() throws {
        guard version else { throw CleanExit.helpRequest(self) }
        let engine = EngineInfo.current()
        let output = ResultOutput()
        try output.write("sealdb \(EngineInfo.version)\nSQLite \(engine.sqliteVersion)\n")
        try output.write("SQLCipher \(engine.cipherVersion ?? "none (plain build)")\n")
        try output.flush()
    }

    /// Fails if the first argument is not the name of a command, with the name that is nearest to it.
    private static func requireCommand(_ arguments: [String]) throws {
        guard let name = arguments.first(where: { !$0.isSame(as: "help") }), !name.begins(with: "-") else { return }
        let names = configuration.subcommands.compactMap { $0.configuration.commandName }
        guard !names.contains(where: { $0.isSame(as: name) }) else { return }
        do throws(DatabaseError) {
            try Key.requireName(name, of: "command")
        } catch {
            throw ValidationError(error.message)
        }
        // Letters that are missing or too many; two that are exchanged, or one that is another one, count as two.
        let distances = names.map { (name: $0, count: $0.difference(from: name).count) }
        let nearest = distances.min { $0.count < $1.count }.flatMap { $0.count <= 2 ? $0.name : nil }
        let advice = nearest.map { "Did you mean '\($0)'?" } ?? "'sealdb --help' lists them."
        throw ValidationError("There is no command '\(name)'. \(advice)")
    }

    /// Fails if a passphrase is given to an option that asks for one. The parser's own message would show it.
    private static func requireNoPassphrase(_ arguments: [String]) throws {
        let options = [StoreKeyRole.prefix, NewKeyRole.prefix, OtherKeyRole.prefix].map { "--\($0)prompt" }
        for argument in arguments.prefix(while: { !$0.isSame(as: "--") }) {
            guard let option = options.first(where: { argument.begins(with: $0 + "=") }) else { continue }
            throw ValidationError(
                """
                \(option) takes no value: it asks for the passphrase at the terminal. What was given is not shown. Others can see what \
                is on a command line: if it was a passphrase, change it.
                """
            )
        }
    }

    /// Fails if a raw key stands where anything else is asked for. Which message would show it, or which file would get it as
    /// its name, then does not matter. SQL and its parameters are data, and may be a digest: ``GivenKeys`` keeps those out of
    /// messages.
    private static func requireNoRawKey(_ arguments: [String]) throws {
        guard let command = arguments.first, !["query", "exec", "shell"].contains(where: command.isSame) else { return }
        for argument in arguments.dropFirst() {
            let option = argument.begins(with: "--") ? argument.firstIndex(of: "=") : nil
            let value = option.map { argument[argument.index(after: $0)...] } ?? argument[...]
            do throws(DatabaseError) {
                // As in key=…, 0x…, or between quotes.
                let last = value.utf8.lastIndex { "=xX'\" :".utf8.contains($0) }.map {
                    value[value.index(after: $0)...]
                }
                for part in [value, last ?? ""] {
                    try Key.requireName(String(part), of: "file or key, or as another argument,")
                }
            } catch {
                throw ValidationError(error.message)
            }
        }
    }

    /// Nearly all command lines are right, and begin with their command. Read as that command's alone they take half the time.
    /// Whatever is wrong with one is told as all of it is read.
    private static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
        let type = arguments.first.flatMap { name in
            configuration.subcommands.first { $0.configuration.commandName?.isSame(as: name) == true }
        }
        if let type, type.configuration.subcommands.isEmpty,
            // See above.
            let command = try? type.parseAsRoot(Array(arguments.dropFirst())), Swift.type(of: command) == type
        {
            return command
        }
        return try parseAsRoot(arguments)
    }

    static func main() {
        // Otherwise a file could be opened as descriptor 0, 1 or 2, and results be printed into it.
        guard sealeddb_take_standard_descriptors() == 0 else {
            StandardError.message("A standard stream is closed, and /dev/null cannot be opened in its place.")
            Foundation.exit(ExitStatus.inputOutput.rawValue)
        }
        do throws(Failure) { try StandardStreams.requireNoStoreOrKey() } catch { ErrorReport.exit(with: error) }
        // Swift finds the arguments by way of /proc. Without them every command would print its help, and succeed.
        guard CommandLine.argc > 0 else {
            StandardError.message("The arguments cannot be read; /proc is needed for that. Nothing was done.")
            Foundation.exit(ExitStatus.software.rawValue)
        }
        // Swift would repair such an argument, and so name another file.
        for index in 0..<Int(CommandLine.argc) {
            guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else {
                continue
            }
            StandardError.message("An argument is not UTF-8. Nothing was done.")
            Foundation.exit(ExitStatus.usage.rawValue)
        }
        for name in GivenKeys.namesOfFileVariables
        where getenv(name).map({ String(validatingCString: $0) }) == .some(nil) {
            StandardError.message("The environment variable \(name) is not UTF-8. Nothing was done.")
            Foundation.exit(ExitStatus.usage.rawValue)
        }
        // The system resolves names that are not absolute, but reports show them so, and lists, rings and journals keep them.
        if let directory = getcwd(nil, 0) {
            defer { free(directory) }
            guard String(validatingCString: directory) != nil else {
                StandardError.message("The name of the working directory is not UTF-8. Nothing was done.")
                Foundation.exit(ExitStatus.usage.rawValue)
            }
        }
        // Keys must not get into a core dump, or be read by another process of the same user. If this fails, work goes
        // on.
        _ = sealeddb_forbid_dumps()
        // Files that this process or SQLite creates must not be open to other users.
        umask(0o077)
        // With SIGPIPE ignored, write(2) reports that the reader is gone, so transactions are ended properly first.
        signal(SIGPIPE, SIG_IGN)
        // With SIGXFSZ ignored, write(2) also reports a file that exceeds the size limit.
        signal(SIGXFSZ, SIG_IGN)
        // Whoever started this process may ignore it, and then nobody would learn how key programs end.
        signal(SIGCHLD, SIG_DFL)
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            try requireCommand(arguments)
            try requireNoPassphrase(arguments)
            try requireNoRawKey(arguments)
            var command = try parsed(RotationOptions.normalized(arguments))
            // A configuration that cannot be used is not passed over, also if nothing of it would be needed.
            try ConfigurationInUse.require()
            try command.run()
        } catch {
            ErrorReport.exit(with: error)
        }
    }
}
