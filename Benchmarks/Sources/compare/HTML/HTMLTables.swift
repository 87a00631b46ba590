import Wire

extension HTMLReport {
    /// What SealedDB wants to be, and is.
    var goals: String {
        guard !report.goals.isEmpty else { return "" }
        let rows = report.goals.map { goal in
            let range = "<small>\(Format.count(goal.spread.low))–\(Format.count(goal.spread.high))</small>"
            return """
                <tr><td>\(escaped(goal.title))</td><td>\(escaped(goal.wanted))</td>\
                <td>\(Format.count(goal.spread.median))\(goal.spread.rounds.count > 1 ? range : "")</td>\
                <td class="\(goal.isMet ? "met" : "missed")">\(goal.isMet ? "✓ met" : "✗ missed")</td></tr>

                """
        }
        return """
            <h2>Goals</h2><p>Ratios that SealedDB is held to, measured in this run. Times against C are those of the \
            encrypted engine.</p>
            <div class="card"><table><tr><th></th><th>goal</th><th>measured</th><th></th></tr>
            \(rows.joined())</table></div>
            """
    }

    /// What it costs to move from the clear to encryption, and from the peer to SealedDB, at once.
    private var peerTable: String {
        let lines = report.rows.compactMap { row -> String? in
            guard let ratio = row.ratio(.encryptedAgainstPeer), let own = row.series(.encrypted, .sealed),
                let peer = row.series(.plain, .grdb)
            else { return nil }
            let range = "<small>\(Format.count(ratio.low))–\(Format.count(ratio.high))</small>"
            return """
                <tr><td>\(escaped(row.info.group)): \(escaped(row.info.title))</td><td>\(row.info.unit)</td>\
                <td>\(Format.time(nanoseconds: own.nanoseconds.median))</td>\
                <td>\(Format.time(nanoseconds: peer.nanoseconds.median))</td>\
                <td>\(Format.count(ratio.median))\(ratio.rounds.count > 1 ? range : "")</td></tr>

                """
        }
        guard !lines.isEmpty else { return "" }
        return """
            <details><summary>SealedDB encrypted against GRDB plain</summary><div class="card"><table>
            <tr><th></th><th>per</th><th>SealedDB encrypted</th><th>GRDB plain</th><th>ratio</th></tr>
            \(lines.joined())</table></div></details>
            """
    }

    var tables: String {
        var names: [String] = []
        for row in report.rows where !names.contains(row.info.group) { names.append(row.info.group) }
        let groups = names.map { name in
            let rows = report.rows.filter { $0.info.group == name }.map(line).joined()
            return """
                <details><summary>\(escaped(name))</summary><div class="card"><table>
                <tr><th>\(escaped(name))</th><th>per</th><th>encrypted</th><th>plain</th><th>C, encrypted</th>\
                <th>GRDB, plain</th><th>encrypted / plain</th><th>SealedDB / C</th><th>SealedDB / GRDB</th>\
                <th>allocations</th></tr>
                \(rows)
                </table></div></details>
                """
        }
        return
            "<h2>All figures</h2><p>Times are SealedDB's unless the column says otherwise; SealedDB / C is within the "
            + "encrypted engine, SealedDB / GRDB within the plain one. Allocations are the encrypted SealedDB's for a "
            + "unit of work, the engine's own among them.</p>" + peerTable + groups.joined()
    }

    private func line(_ row: Report.Row) -> String {
        let own = row.info.isForCAlone ? Subject.c : .sealed
        func time(_ engine: EngineKind, _ subject: Subject) -> String {
            guard let series = row.series(engine, subject) else { return "<td></td>" }
            let nanoseconds = series.nanoseconds.median
            let rate =
                row.info.bytes > 0
                ? "<small class=\"rate\">\(Format.count(row.info.bytes * 1e3 / nanoseconds)) MB/s</small>" : ""
            return "<td>\(Format.time(nanoseconds: nanoseconds))\(rate)</td>"
        }
        func ratio(_ kind: RatioKind) -> String {
            guard let spread = row.ratio(kind) else { return "<td></td>" }
            let range = "<small>\(Format.count(spread.low))–\(Format.count(spread.high))</small>"
            return "<td>\(Format.count(spread.median))\(spread.rounds.count > 1 ? range : "")</td>"
        }
        let allocations = row.allocations.map(Format.number) ?? ""
        return """
            <tr><td>\(escaped(row.info.title))</td><td>\(row.info.unit)</td>\(time(.encrypted, own))\
            \(time(.plain, own))\(time(.encrypted, .c))\(time(.plain, .grdb))\
            \(ratio(row.info.isForCAlone ? .encryptionInC : .encryption))\(ratio(.wrapper))\(ratio(.peer))\
            <td>\(allocations)</td></tr>

            """
    }

    var facts: String {
        let facts = report.environment.map { name, value in
            "<tr><td>\(escaped(name))</td><td>\(escaped(value))</td></tr>"
        }
        let speed = report.opensslSpeed.map { entry in
            let page = Format.number(4016 / entry.megabytesPerSecond)
            return "<tr><td>openssl speed, \(escaped(entry.name))</td>"
                + "<td>\(Format.count(entry.megabytesPerSecond)) MB/s, \(page) µs a page</td></tr>"
        }
        func options(_ title: String, _ list: [String]?) -> String {
            guard let list else { return "" }
            let text = escaped(list.joined(separator: " "))
            return "<details><summary>\(title)</summary><p><code>\(text)</code></p></details>"
        }
        return """
            <h2>Where it was measured</h2>
            <div class="card"><table class="facts">\((facts + speed).joined())</table></div>
            \(options("Compile options of SQLCipher", report.encrypted?.compileOptions))
            \(options("Compile options of SQLite", report.plain?.compileOptions))
            """
    }
}
