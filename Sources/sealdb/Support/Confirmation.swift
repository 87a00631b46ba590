import CSealedDBSystem
import Foundation

enum Confirmation {
    /// Asks on the terminal, even if standard input is something else. False without a terminal, and for any answer
    /// except "yes".
    static func ask(_ question: String) throws -> Bool {
        let terminal = sealeddb_open("/dev/tty", O_RDWR | O_NOCTTY, 0)
        guard terminal >= 0 else { return false }
        // The result does not matter: a terminal does not have to store anything.
        defer { close(terminal) }
        // If the question cannot be shown, nobody answers yes.
        _ = question.utf8.withContiguousStorageIfAvailable { write(terminal, $0.baseAddress, $0.count) }
        var answer: [UInt8] = []
        var byte: UInt8 = 0
        while read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n"), answer.count < 16 { answer.append(byte) }
        return answer == Array("yes".utf8)
    }
}
