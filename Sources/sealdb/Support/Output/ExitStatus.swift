/// The exit codes of sysexits.h, as this tool uses them.
enum ExitStatus: Int32 {
    /// Two stores differ.
    case different = 1
    /// Some of several stores failed, some rows were rejected, or not everything could be recovered.
    case partial = 2
    case usage = 64
    case data = 65
    case noInput = 66
    case unavailable = 69
    case software = 70
    case cannotCreate = 73
    case inputOutput = 74
    case busy = 75
    case wrongKey = 77
    case configuration = 78
    /// Ended by a signal. The actual code contains the signal's number: 129, 130 or 143.
    case interrupted = 130
}

/// An error of this tool, with a message for people and an exit code for scripts.
struct Failure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}
