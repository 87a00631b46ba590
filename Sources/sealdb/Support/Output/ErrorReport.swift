import ArgumentParser
import Foundation
import SealedDB

/// Turns errors into one message on standard error and an exit code.
enum ErrorReport {
    static func exit(with error: any Error) -> Never {
        if let told = error as? ToldError {
            let (status, message) = statusAndMessage(of: told.error)
            JSONReport.fail(status: status, message: message)
            Foundation.exit(status)
        }
        guard error is Failure || error is DatabaseError || error is LocatedError else { exitWithParserError(error) }
        let (status, message) = statusAndMessage(of: error)
        StandardError.message(message)
        JSONReport.fail(status: status, message: message)
        Foundation.exit(status)
    }

    static func statusAndMessage(of error: any Error) -> (status: Int32, message: String) {
        switch error {
        case let failure as Failure where failure.status == .interrupted:
            (SignalWatch.exitStatus ?? ExitStatus.interrupted.rawValue, failure.message)
        case let failure as Failure: (failure.status.rawValue, failure.message)
        case let error as DatabaseError where error.extendedCode == SQLITE_READONLY && JSONReport.path != nil:
            // SQLite does not say what it could not write.
            (status(of: error), "Cannot write to \(JSONReport.path ?? ""): \(error.message)")
        case let error as DatabaseError: (status(of: error), error.message)
        case let lost as LostTransaction: statusAndMessage(of: lost.error)
        case let located as LocatedError: (status(of: located.error), located.message)
        default: (ExitStatus.software.rawValue, "\(error)")
        }
    }

    /// Prints help texts and usage errors. Their text comes from argument-parser.
    private static func exitWithParserError(_ error: any Error) -> Never {
        let code = SealdbCommand.exitCode(for: error)
        var text = SealdbCommand.fullMessage(for: error)
        if code.isSuccess {
            let output = ResultOutput()
            do {
                try output.write(text + "\n")
                try output.flush()
            } catch {
                Foundation.exit(ExitStatus.inputOutput.rawValue)
            }
        } else if !text.isEmpty {
            if text.hasPrefix("Error: ") { text.removeFirst("Error: ".count) }
            StandardError.message(text)
            JSONReport.fail(status: code.rawValue, message: text)
        }
        Foundation.exit(code.rawValue)
    }

    private static let statuses: [DatabaseError.Reason: ExitStatus] = [
        .wrongKey: .wrongKey, .keyRequired: .wrongKey,
        .plaintext: .data, .notADatabase: .data, .damaged: .data, .truncated: .data, .malformedKey: .data,
        .malformedKeyRing: .data, .notRegularFile: .data, .malformedSlots: .data, .olderSlots: .configuration,
        .noSuchFile: .noInput, .notPermitted: .noInput,
        .keySourceFailed: .unavailable,
        .alreadyExists: .cannotCreate, .cannotCreate: .cannotCreate,
        .ioError: .inputOutput, .noSpace: .inputOutput,
        .busy: .busy,
        .locked: .busy,
        .unsafeKeyFile: .configuration, .unsafeJournal: .configuration, .hardLinked: .configuration,
        .ownershipNotKept: .configuration,
        .unsupported: .configuration, .wrongEngine: .configuration, .unusableSettings: .configuration,
        .olderFormat: .configuration, .otherSettings: .configuration,
        .unverified: .software, .misuse: .software, .notAllowed: .usage,
    ]

    static func status(of error: DatabaseError) -> Int32 {
        if error.reason == .interrupted { return SignalWatch.exitStatus ?? 130 }
        return (statuses[error.reason] ?? statusOfCode(error.code)).rawValue
    }

    /// The exit code for errors that have only SQLite's code: mostly SQL that the database rejects.
    private static func statusOfCode(_ code: Int32) -> ExitStatus {
        switch code {
        case SQLITE_CANTOPEN: .noInput
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_PROTOCOL, SQLITE_NOLFS: .inputOutput
        case SQLITE_INTERNAL, SQLITE_NOMEM, SQLITE_NOTFOUND: .software
        default: .data
        }
    }
}
