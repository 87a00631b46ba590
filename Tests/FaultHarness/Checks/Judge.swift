import Foundation

/// How a trial ended, as far as a user can know.
struct Ending: Sendable {
    /// The exit code; `nil` if the process was killed or the power failed before it ended.
    var status: Int32?
    var output: String
    var error: String
    /// Whether a part of the trial's fault was that a file could not be removed.
    var mayLeaveTemporaries = false
    /// Whether anything was disturbed. If not, the operation must succeed.
    var wasDisturbed = true
    /// Whether it could not say what went wrong.
    var mayBeSilent = false
    /// Whether it ran on what a trial left.
    var isFollowUp = false
}

/// What is found in a directory after a trial, and what is wrong with it.
struct Verdict: Sendable {
    enum Reached: Sendable, Equatable { case before, after, either, neither }

    var reached = Reached.neither
    var problems: [String] = []
}

/// Looks at what a trial left, with nothing but SQLite's C interface and the bytes of the files.
struct Judge {
    let operation: Operation
    let directory: String
    /// Whether the new key is tried first: trying a key may undo a transaction that was cut short.
    var triesNewKeyFirst = false

    func verdict(_ ending: Ending) throws -> Verdict {
        var verdict = Verdict()
        let names = try Files.names(in: directory)
        verdict.problems += leftovers(names, ending)
        verdict.problems += try leaks(names)
        var reached: [Verdict.Reached] = []
        for target in operation.targets {
            let (state, problem) = isAside(target, names, ending) ? (.before, nil) : examine(target, ending)
            reached.append(state)
            if let problem { verdict.problems.append(problem) }
        }
        let definite = Set(reached.filter { $0 != .either })
        verdict.reached = definite.count <= 1 ? definite.first ?? .either : .neither
        if definite.count > 1 { verdict.problems.append("the files do not belong together: \(reached)") }
        if verdict.reached == .after && !isKept(names) {
            verdict.problems.append("the store that was there before is not kept whole")
        }
        if verdict.reached == .after {
            let lost = try operation.unsynced.filter { name in
                try !names.contains(name) || Files.read(directory + "/" + name) != operation.files[name]
            }
            verdict.problems += lost.sorted().map { "it depends on \($0), which is not whole" }
        }
        verdict.problems += lies(verdict.reached, ending)
        if let places = operation.keyPlaces { verdict.problems += lostKeys(places, verdict.reached, ending) }
        return verdict
    }

    // MARK: Files

    private static let journals = ["-journal", "-wal", "-shm"]

    private func leftovers(_ names: [String], _ ending: Ending) -> [String] {
        names.filter { name in
            if operation.files[name] != nil || operation.targets.contains(where: { $0.file == name }) { return false }
            let isJournal = Judge.journals.contains(where: name.hasSuffix)
            // The next shipper goes on with the log.
            if isJournal, !operation.folders.isEmpty { return false }
            if let folder = operation.folders.first(where: { name.hasPrefix($0 + "/") }) {
                // The next shipper removes it.
                let isUnfinished = name.split(separator: "/").last?.hasPrefix(".sealdb-") ?? false
                let isNextShipper = ending.isFollowUp && operation.arguments.contains(folder)
                let mayStay = ending.isFollowUp || ending.status == nil || ending.mayLeaveTemporaries
                return isUnfinished && (isNextShipper || !mayStay)
            }
            if let kept = operation.keeps, name.hasPrefix(kept.prefix) { return false }
            // Empty, and none of the store's; the next user of that store removes it.
            if name.hasSuffix("-sealdb-lock") && (ending.wasDisturbed || ending.isFollowUp) { return false }
            let isTemporary = operation.temporaries.contains(where: name.hasPrefix)
            if isTemporary {
                // The next restore goes on with it.
                let isTold = name.hasPrefix(".db.sealdb-restore-") && ending.error.contains(name) && !ending.isFollowUp
                return !(ending.status == nil || ending.mayLeaveTemporaries || isTold)
            }
            // Who reads a database in WAL mode without the right to write it cannot clear up.
            if operation.openFiles.contains(name) && isJournal { return false }
            return !(isJournal && ending.wasDisturbed)
        }.map { "left over: \($0)" }
    }

    private static let secrets: [[UInt8]] =
        [Array(Seed.marker.utf8)] + TestKey.allCases.flatMap { [$0.bytes, Array($0.hexadecimal.utf8)] }

    private func leaks(_ names: [String]) throws -> [String] {
        try names.compactMap { name -> String? in
            if operation.openFiles.contains(where: { name == $0 || name.hasPrefix(".\($0).sealdb-") }) { return nil }
            if name.hasSuffix(".key") || name.hasSuffix("-shm") { return nil }
            let bytes = try Files.read(directory + "/" + name)
            let leaked = Judge.secrets.contains { secret in Files.contains(bytes, secret) }
            return leaked ? "plaintext or a key in \(name)" : nil
        }
    }

    // MARK: Contents

    private func examine(_ target: Operation.Target, _ ending: Ending) -> (Verdict.Reached, String?) {
        let path = directory + "/" + target.file
        var status = stat()
        let isThere = lstat(path, &status) == 0
        var matches: [Operation.State] = []
        var faults: [String] = []
        var keys: [String] = []
        let states = target.before == target.after ? [target.before] : [target.before, target.after]
        for state in triesNewKeyFirst ? states.reversed() : states {
            switch state {
            case .absent:
                if !isThere { matches.append(state) }
            case .anything:
                matches.append(state)
            case .repository(let key, let digest):
                do {
                    guard let store = try RepositoryProbe(path).newest() else {
                        if digest == nil { matches.append(state) }
                        if let load = operation.load { faults += missing([:], load, ending) }
                        continue
                    }
                    guard let digest else { continue }
                    // Outside of what is judged.
                    let copy = directory + "-restored"
                    try Files.write(copy, store)
                    defer { unlink(copy) }
                    guard case .whole(let contents) = StoreProbe.find(copy, key: key.specification) else {
                        faults.append("what is restored is not whole under \(name(key))")
                        continue
                    }
                    if contents.digest == digest { matches.append(state) }
                    if let load = operation.load { faults += missing(contents.batches, load, ending) }
                } catch {
                    faults.append("\(error)")
                }
            case .keyFile:
                guard isThere else { continue }
                let bytes = (try? Files.read(path)) ?? []
                let isWhole = bytes.count == 65 && bytes.dropLast().allSatisfy { isxdigit(Int32($0)) != 0 }
                if isWhole { matches.append(state) } else { faults.append("\(bytes.count) bytes, not a key") }
            case .key(let key):
                if isThere, (try? Files.read(path)) == key.fileContents { matches.append(state) }
            case .ring(let active, let ids):
                guard isThere else { continue }
                if holdsRing(path, active, ids) { matches.append(state) }
            case .slots(let all, let none, let digest):
                guard isThere else { continue }
                let probe = SlotProbe(path)
                faults += probe.faults + slotLeaks(probe)
                guard let specification = probe.specification else { continue }
                switch StoreProbe.find(path, key: specification) {
                case .absent, .locked: break
                case .damaged(let what): faults.append("under its data key: \(what)")
                case .whole(let contents):
                    // The store's own key may have become its data key.
                    let own = TestKey.allCases.first { $0.bytes == probe.dataKey }
                    keys.append(own.map(name) ?? "its data key")
                    let isRight = contents.digest == digest && probe.keys.isSuperset(of: all)
                    if isRight, probe.keys.isDisjoint(with: none) { matches.append(state) }
                }
            case .store(let key, let settings, let digest):
                guard isThere else { continue }
                switch StoreProbe.find(path, key: key?.specification, pragmas: settings) {
                case .absent, .locked: break
                case .damaged(let what): faults.append("under \(name(key)): \(what)")
                case .whole(let contents):
                    keys.append(name(key))
                    // With slots it is another state, though its key may be the same.
                    if contents.digest == digest, SlotProbe(path).specification == nil { matches.append(state) }
                    if let load = operation.load { faults += missing(contents.batches, load, ending) }
                }
            }
        }
        if Set(keys).count > 1 { faults.append("opens with several keys: \(keys)") }
        if matches.isEmpty && faults.isEmpty {
            faults.append(keys.isEmpty ? "neither as before nor as after, and no key opens it" : "rows are missing")
        }
        let reached: Verdict.Reached =
            matches.count != 1 ? .neither : states.count == 1 ? .either : matches[0] == target.after ? .after : .before
        return (reached, faults.isEmpty ? nil : "\(target.file): " + faults.joined(separator: "; "))
    }

    /// The data key is in no file in the clear.
    private func slotLeaks(_ probe: SlotProbe) -> [String] {
        guard !probe.dataKey.isEmpty else { return [] }
        let secrets = [probe.dataKey, Array(SlotProbe.hexadecimal(probe.dataKey).utf8)]
        let names = (try? Files.names(in: directory)) ?? []
        return names.compactMap { name in
            guard let bytes = try? Files.read(directory + "/" + name), bytes != TestKey.files[name] else { return nil }
            return secrets.contains { Files.contains(bytes, $0) } ? "the data key in \(name)" : nil
        }
    }

    /// Whether the store has only the name under which it is kept, and nobody was told otherwise.
    private func isAside(_ target: Operation.Target, _ names: [String], _ ending: Ending) -> Bool {
        guard operation.keeps?.mayBeAlone == true, target.file == "db", !names.contains(target.file) else {
            return false
        }
        return isKept(names)
            && (ending.status == nil || ending.error.contains("is missing, or is a file that somebody else"))
    }

    /// Whether what had to be kept of the state before is there.
    private func isKept(_ names: [String]) -> Bool {
        guard let kept = operation.keeps, case .store(let key, let settings, let digest) = kept.state else {
            return true
        }
        return names.contains { name in
            guard name.hasPrefix(kept.prefix), !Judge.journals.contains(where: name.hasSuffix) else { return false }
            let found = StoreProbe.find(directory + "/" + name, key: key?.specification, pragmas: settings)
            if case .whole(let contents) = found { return contents.digest == digest }
            return false
        }
    }

    /// What stands before the id of a retired key.
    private static let retiredMark = "retired:"

    private func holdsRing(_ path: String, _ active: String, _ ids: [String]) -> Bool {
        let text = String(decoding: (try? Files.read(path)) ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let version = ids.contains { $0.hasPrefix(Judge.retiredMark) } ? 2 : 1
        guard lines.prefix(2) == ["sealdb-keyring \(version)", "active \(active)"], lines.last == "" else {
            return false
        }
        let entries = lines.dropFirst(2).dropLast().map { line in
            let words = line.split(separator: " ").map(String.init)
            // Its id, and the day until which it is kept.
            guard words.first == Judge.retiredMark, words.count > 3 else { return words }
            return [Judge.retiredMark + words[1]] + words[3...]
        }
        return entries.map { $0[0] } == ids
            && entries.allSatisfy { entry in
                guard entry.count == 3, entry[1] == "key", entry[2].count == 64 else { return false }
                let known = TestKey.allCases.first { entry[0] == "\($0)" || entry[0] == Judge.retiredMark + "\($0)" }
                return known.map { $0.hexadecimal == entry[2] } ?? true
            }
    }

    private func name(_ key: TestKey?) -> String { key.map { "the \($0) key" } ?? "no key" }

    private func missing(_ batches: [Int: Int], _ load: Operation.Load, _ ending: Ending) -> [String] {
        let lines = ending.output.split(separator: "\n", omittingEmptySubsequences: false)
        let acknowledged = lines.dropLast().compactMap { Int($0) }
        var faults = acknowledged.filter { batches[$0] == nil }.map { "the acknowledged batch \($0) is missing" }
        faults += batches.filter { $0.value != 3 }.map { "batch \($0.key) has \($0.value) of 3 rows" }
        if load.isOrdered {
            let last = batches.keys.max() ?? 0
            // Where a commit failed, later ones may have succeeded.
            if ending.error.isEmpty && last != batches.count {
                faults.append("of \(last) batches there are \(batches.count)")
            }
            if ending.status == 0 && last < load.batches { faults.append("success, but only \(last) batches") }
        }
        return faults
    }

    /// Keys that are in none of the files where their owner would look for them.
    private func lostKeys(_ places: Operation.KeyPlaces, _ reached: Verdict.Reached, _ ending: Ending) -> [String] {
        func isIn(_ file: String, _ key: TestKey) -> Bool {
            (try? Files.read(directory + "/" + file)) == key.fileContents
        }
        var problems: [String] = []
        if !isIn(places.file, .old), !isIn(places.former, .old) {
            problems.append("the old key is in none of its files")
        }
        if !isIn(places.file, .new), !isIn(places.new, .new) { problems.append("the new key is in none of its files") }
        if reached == .before, !isIn(places.file, .old) { problems.append("the key file is replaced before the store") }
        if ending.status == 0, !areExchanged(places) {
            problems.append("it exits 0, and the key files are not exchanged")
        }
        return problems
    }

    /// Whether nothing more is to be done about the key files.
    func areExchanged(_ places: Operation.KeyPlaces) -> Bool {
        let contents = places.all.map { try? Files.read(directory + "/" + $0) }
        return contents[0] == TestKey.new.fileContents && contents[1] == TestKey.old.fileContents && contents[2] == nil
    }

    // MARK: Words

    private static let documentedStatuses: Set<Int32> = [0, 64, 65, 66, 70, 73, 74, 75, 78]

    /// Where exit code and output say something else than the files.
    private func lies(_ reached: Verdict.Reached, _ ending: Ending) -> [String] {
        guard let status = ending.status else {
            // The result is printed when the work is done, and not before.
            let saidDone = operation.load == nil && !ending.output.isEmpty
            return saidDone && reached == .before ? ["it said that it was done, and was not"] : []
        }
        if !ending.wasDisturbed && status != 0 { return ["undisturbed, it exits \(status): \(ending.error)"] }
        if status < 0 { return ["signal \(-status) ended it: \(ending.error)"] }
        if operation.isOfSealdb && !Judge.documentedStatuses.contains(status) {
            return ["it exits \(status), which is not what happened: \(ending.error)"]
        }
        if status == 0 { return reached == .before ? ["it exits 0, and has not done it"] : [] }
        if ending.error.isEmpty && ending.mayBeSilent { return [] }
        if ending.error.isEmpty { return ["it exits \(status) without a word"] }
        guard reached == .before || reached == .after, operation.failure == .before else { return [] }
        if operation.saysUnknown.contains(where: ending.error.contains) { return [] }
        // The result is written when all is done.
        let saysAfter = (operation.saysAfter + ["Cannot write the result"]).contains(where: ending.error.contains)
        if saysAfter == (reached == .after) { return [] }
        return ["it exits \(status) and says the state is not \(reached), which it is: \(ending.error)"]
    }
}
