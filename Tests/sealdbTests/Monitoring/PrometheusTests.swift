import Foundation
import SealedDB
import Testing

@testable import sealdb

/// The text for Prometheus, read as its format says: https://prometheus.io/docs/instrumenting/exposition_formats/
@Suite(.hangLimit)
struct PrometheusTests {
    struct Malformed: Error { let line: String }

    /// The samples by metric and store; "" for one without a store. Fails on anything that the format does not have.
    static func samples(_ text: String) throws -> [String: [String: Double]] {
        var samples: [String: [String: Double]] = [:]
        var finished: Set<String> = []
        var current = ""
        var typed = false
        guard text.hasSuffix("\n") else { throw Malformed(line: "no newline at the end") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
            if line.hasPrefix("# HELP ") {
                finished.insert(current)
                current = String(words[2])
                typed = false
                guard !finished.contains(current), words.count == 4, !words[3].contains("\\") else {
                    throw Malformed(line: String(line))
                }
            } else if line.hasPrefix("# TYPE ") {
                guard words.count == 4, words[2] == current, words[3] == "gauge", !typed else {
                    throw Malformed(line: String(line))
                }
                typed = true
            } else {
                let pattern = /([a-z_]+)(?:\{store="((?:[^"\\\n]|\\["\\n])*)"\})? (-?[0-9]+)/
                guard let match = line.wholeMatch(of: pattern), typed, match.output.1 == current,
                    let value = Double(match.output.3)
                else { throw Malformed(line: String(line)) }
                let store = String(match.output.2 ?? "").replacing("\\n", with: "\n").replacing("\\\"", with: "\"")
                    .replacing("\\\\", with: "\\")
                guard samples[current, default: [:]].updateValue(value, forKey: store) == nil else {
                    throw Malformed(line: String(line))
                }
            }
        }
        return samples
    }

    @Test func oddNamesAndTimes() throws {
        var status = StoreStatus()
        status.times.key = Date(timeIntervalSince1970: 1_700_000_000)
        status.keyAgeSource = .record
        status.needsRotation = true
        status.due = ["rotation", "backup"]
        let names = ["/a \"b\"", "/c\nd", "/e\\", "/é"]
        let states = names.map { (path: $0, status: StoreStatus?.some(status)) } + [("/gone", nil)]
        let text = PrometheusText(states, time: Date(timeIntervalSince1970: 5)).text
        let samples = try PrometheusTests.samples(text)
        #expect(samples["sealdb_store_up"] == ["/a \"b\"": 1, "/c\nd": 1, "/e\\": 1, "/é": 1, "/gone": 0])
        #expect(samples["sealdb_store_key_changed_timestamp_seconds"]?["/e\\"] == 1_700_000_000)
        #expect(samples["sealdb_store_rotation_needed"]?["/é"] == 1)
        #expect(samples["sealdb_store_backup_due"]?["/é"] == 1 && samples["sealdb_store_verification_due"]?["/é"] == 0)
        #expect(samples["sealdb_status_timestamp_seconds"] == ["": 5])
        // What nobody knows has no sample.
        #expect(samples["sealdb_store_backup_timestamp_seconds"] == nil && samples["sealdb_store_sound"] == nil)
        #expect(samples["sealdb_store_rotation_needed"]?["/gone"] == nil)
    }

    /// Some file systems keep times that no calendar has.
    @Test(arguments: [Double(Int64.max), Double(Int64.min), .infinity])
    func timesOfNoCalendar(time: Double) throws {
        var status = StoreStatus()
        status.times.key = Date(timeIntervalSince1970: time)
        #expect(status.text.contains("key is"))
        let samples = try PrometheusTests.samples(PrometheusText([("/a", status)], time: Date()).text)
        #expect(samples["sealdb_store_key_changed_timestamp_seconds"]?["/a"] != nil)
        #expect(StoreStatus.clamped(Date(timeIntervalSince1970: time)).formatted(.iso8601).hasSuffix("Z"))
    }

    /// A file that cannot be examined may be anybody's, and one that comes meanwhile is.
    @Test func noOtherFileIsReplaced() throws {
        let sandbox = try Sandbox()
        let directory = StoreItem.identity(of: sandbox.directory)
        let path = directory + "/f.prom"
        let new = Data("new\n".utf8)
        try sandbox.write("f.prom", "somebody's\n")
        for code in [EIO, EACCES, ENOTDIR] {
            let watch = CallWatch(directory, failing: 0...0, code: code)
            #expect(throws: Failure.self) { _ = try PrometheusText.requireReplaceable(path) }
            #expect(watch.end(describing: 0)?.hasPrefix("open") == true)
        }
        #expect(throws: Failure.self) { try ReplacedFile.write(new, to: path, mode: 0o644, replacing: .nothing) }
        try sandbox.write("f.prom", "")
        let former = try PrometheusText.requireReplaceable(path)
        try sandbox.write("f.prom", "somebody's\n")
        #expect(throws: Failure.self) { try ReplacedFile.write(new, to: path, mode: 0o644, replacing: former) }
        #expect(try sandbox.contents("f.prom") == Data("somebody's\n".utf8))
        #expect(try sandbox.names() == ["f.prom"])
        // What a killed run has left goes.
        try sandbox.write(TemporaryFile.path(beside: path).nameOfPath, "left")
        try ReplacedFile.write(new, to: directory + "/f.prom", mode: 0o644)
        #expect(try sandbox.names() == ["f.prom"])
    }

    /// Whatever call fails, readers find the former contents or the new ones, and no other file stays.
    @Test func theFileIsReplacedInOneStep() throws {
        let sandbox = try Sandbox()
        func write(_ name: String) throws -> String {
            let path = sandbox.path(name)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try Data("former\n".utf8).write(to: URL(fileURLWithPath: path + "/f.prom"))
            return URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        }
        let new = Data("new\n".utf8)
        let counted = try write("counted")
        let count = CallWatch(counted)
        try ReplacedFile.write(new, to: counted + "/f.prom", mode: 0o644)
        let calls = count.endWithAll()
        #expect(calls.contains { $0.hasPrefix("fsync") } && calls.contains { $0.hasPrefix("rename") }, "\(calls)")
        for index in calls.indices {
            let directory = try write("\(index)")
            let watch = CallWatch(directory, failing: index...index)
            var failure: Failure?
            do throws(Failure) {
                try ReplacedFile.write(new, to: directory + "/f.prom", mode: 0o644)
            } catch {
                failure = error
            }
            let call = watch.end(describing: index) ?? "a call that was not made"
            let contents = try Data(contentsOf: URL(fileURLWithPath: directory + "/f.prom"))
            let text = String(decoding: contents, as: UTF8.self)
            #expect(["former\n", "new\n"].contains(text), "\(call)")
            if text == "former\n" { #expect(failure != nil, "\(call)") }
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(names == ["f.prom"] || call.hasPrefix("unlink"), "\(call): \(names)")
        }
    }
}
