import Wire

extension HTMLReport {
    var tables: String {
        var names: [String] = []
        for row in report.rows where !names.contains(row.info.group) { names.append(row.info.group) }
        let groups = names.map { name in
            let rows = report.rows.filter { $0.info.group == name }.map(line).joined()
            return """
                <details><summary>\(escaped(name))</summary><div class="card"><table>
                <tr><th>\(escaped(name))</th><th>per</th><th>encrypted</th><th>plain</th><th>C, encrypted</th>\
                <th>GRDB, plain</th><th>encrypted / plain</th><th>SealedDB / C</th><th>SealedDB / GRDB</th>\
                <th>encrypted / GRDB</th><th>allocations</th></tr>
                \(rows)
                </table></div></details>
                """
        }
        return
            "<h2>All figures</h2><p>Times are SealedDB's unless the column says otherwise; SealedDB / C is within the "
            + "encrypted engine, SealedDB / GRDB within the plain one. Allocations are the encrypted SealedDB's for a "
            + "unit of work, the engine's own among them.</p>" + groups.joined()
    }

    private func line(_ row: Report.Row) -> String {
        let own = row.info.isForCAlone ? Subject.c : .sealed
        func time(_ engine: EngineKind, _ subject: Subject) -> String {
            guard let series = row.series(engine, subject) else { return "<td></td>" }
            let nanoseconds = series.nanoseconds.median
            let rate =
                row.info.bytes > 0 ? "<small>\(Format.count(row.info.bytes * 1e3 / nanoseconds)) MB/s</small>" : ""
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
            \(ratio(.encryptedAgainstPeer))<td>\(allocations)</td></tr>

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
