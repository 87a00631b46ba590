import Foundation
import Synchronization

/// The lines by which clients tell the parent what is done. Each is one write to a pipe, so that a kill cannot cut it.
enum Acknowledgements {
    /// What a line says.
    enum Line {
        case step(client: Int, number: Int, outcome: StoreModel.Outcome, ids: [Int: Int])
        /// - Parameter isViolation: whether a promise was broken, or else an operation failed.
        case failure(client: Int, isViolation: Bool, text: String)
    }

    static func say(client: Int, step: Step, _ outcome: StoreModel.Outcome, ids: [Int: Int]) {
        let reported = outcome == .done ? ids.map { " \($0.key)=\($0.value)" }.joined() : ""
        write("\(client) \(step.number) \(outcome.rawValue)\(reported)\n")
    }

    /// Says what nobody expects, and ends the process.
    static func fail(client: Int, step: Step, _ error: any Error) -> Never {
        let text = "\(step): \(error)".replacingOccurrences(of: "\n", with: " ")
        write("\(error is Violation ? "violated" : "failed") \(client) \(step.number) \(text.prefix(3000))\n")
        exit(1)
    }

    static func fail(client: Int, _ text: String) -> Never {
        write("failed \(client) 0 \(text)\n")
        exit(1)
    }

    private static let lock = Mutex(())

    private static func write(_ line: String) {
        lock.withLock { _ in
            // The parent is gone: nobody counts on what follows.
            do { try FileHandle.standardOutput.write(contentsOf: Data(line.utf8)) } catch { exit(2) }
        }
    }

    static func parse(_ text: Substring) -> Line? {
        let words = text.split(separator: " ", maxSplits: 3)
        if words.count == 4, ["failed", "violated"].contains(words[0]), let client = Int(words[1]), Int(words[2]) != nil
        {
            return .failure(client: client, isViolation: words[0] == "violated", text: String(words[3]))
        }
        guard words.count >= 3, let client = Int(words[0]), let number = Int(words[1]),
            let outcome = StoreModel.Outcome(rawValue: String(words[2]))
        else { return nil }
        var ids: [Int: Int] = [:]
        for pair in words.dropFirst(3).flatMap({ $0.split(separator: " ") }) {
            let numbers = pair.split(separator: "=").compactMap { Int($0) }
            if numbers.count == 2 { ids[numbers[0]] = numbers[1] }
        }
        return .step(client: client, number: number, outcome: outcome, ids: ids)
    }
}
