import Foundation

/// A place where one trial at a time is made, with the programs that are stopped there. Used by one thread.
final class Worker {
    /// The directory of the trial, which is made afresh for each.
    let directory: String
    private let root: String
    private let interposer: String
    private var servers: [String: ForkServer] = [:]

    init(_ index: Int, root: String, interposer: String) throws {
        self.root = "\(root)/worker-\(index)"
        self.interposer = interposer
        directory = self.root + "/trial"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: self.root + "/start", withIntermediateDirectories: true)
    }

    /// A file of this worker, outside of the trial's directory.
    func file(_ name: String) -> String { root + "/" + name }

    /// Runs the operation in its directory as that is.
    func run(_ operation: Operation, _ plan: String) throws -> ForkServer.Run {
        try run(operation.arguments, plan)
    }

    func run(_ arguments: [String], _ plan: String = "") throws -> ForkServer.Run {
        let name = arguments.joined(separator: " ")
        if servers[name] == nil {
            servers[name] = try ForkServer(
                arguments,
                interposer: interposer,
                directory: root + "/start",
                files: root
            )
        }
        return try servers[name]!.run(in: directory, plan)
    }

    func reset(to files: [String: Files.Bytes]) throws { try Files.fill(directory, with: files) }

    /// One file-system call of an undisturbed run.
    struct Call: Sendable {
        /// Counted from 1.
        let index: Int
        let name: String
        /// Whether it concerns the directory of the trial.
        let isInside: Bool
        /// The errors that it can have; 0 stands for a short write.
        let errors: [Int32]
        /// Relative to the directory.
        let path: String

        var changesFiles: Bool {
            let changes = [
                "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2", "link",
                "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir",
            ]
            return changes.contains(name)
        }
    }

    /// The calls of a run, line by line, as the interposer tells them.
    func trace(_ operation: Operation, _ plan: String) throws -> String {
        try reset(to: operation.files)
        _ = try run(operation, "census=\(file("census")) \(plan)")
        return String(decoding: try Files.read(file("census")), as: UTF8.self)
    }

    /// All calls of an undisturbed run, which must succeed.
    func census(_ operation: Operation) throws -> (calls: [Call], run: ForkServer.Run) {
        try reset(to: operation.files)
        let run = try run(operation, "census=\(file("census"))")
        guard run.status == 0 else {
            throw HarnessError("\(operation.id) exits \(run.status) even when nothing disturbs it: \(run.error)")
        }
        let text = String(decoding: try Files.read(file("census")), as: UTF8.self)
        let calls = text.split(separator: "\n").map { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            return Call(
                index: Int(fields[0]) ?? 0,
                name: String(fields[1]),
                isInside: fields[2] == "1",
                errors: fields[3].split(separator: ",").compactMap { Int32($0) },
                path: String(fields[4])
            )
        }
        return (calls, run)
    }
}
