import Wire

/// The tables that the terminal and Markdown share.
struct TextReport {
    let report: Report

    struct Table {
        let title: String
        /// How many of the columns are words.
        let wordColumns: Int
        let header: [String]
        /// A group without a name has no heading of its own.
        var groups: [(name: String, rows: [[String]])]
    }

    private static let columns: [(title: String, kind: RatioKind)] = [
        ("encrypted / plain", .encryption), ("SealedDB / C", .wrapper), ("SealedDB / GRDB", .peer),
    ]

    private func cells(_ row: Report.Row) -> [String] {
        let own = row.info.isForCAlone ? Subject.c : Subject.sealed
        let series = row.series(.encrypted, own)
        let time = series?.nanoseconds.median
        let rate = row.info.bytes > 0 ? time.map { Format.count(row.info.bytes * 1e3 / $0) } : nil
        return [row.info.title, row.info.unit, time.map { Format.time(nanoseconds: $0) } ?? "", rate ?? ""]
            + Self.columns.map { column in
                let kind = row.info.isForCAlone && column.kind == .encryption ? .encryptionInC : column.kind
                return Format.ratio(row.ratio(kind))
            } + [row.allocations.map(Format.number) ?? ""]
    }

    private func grouped(_ cells: (Report.Row) -> [String]?) -> [(name: String, rows: [[String]])] {
        var result: [(name: String, rows: [[String]])] = []
        for row in report.rows {
            guard let cells = cells(row) else { continue }
            if result.last?.name == row.info.group {
                result[result.count - 1].rows.append(cells)
            } else {
                result.append((row.info.group, [cells]))
            }
        }
        return result
    }

    /// The short table of the README.
    private var highlights: Table {
        let kinds: [RatioKind] = [.encryption, .wrapper, .encryptedAgainstPeer]
        return Table(
            title: "In short",
            wordColumns: 1,
            header: ["", "encrypted / plain", "SealedDB / C", "SealedDB encrypted / GRDB plain"],
            groups: [("", Highlights.rows(report, short: true).map { [$0.label] + kinds.map(ratioOf($0.row)) })]
        )
    }

    private func ratioOf(_ row: Report.Row) -> (RatioKind) -> String {
        { Format.ratio(row.ratio($0)) }
    }

    var tables: [Table] {
        let all = Table(
            title: "All benchmarks",
            wordColumns: 2,
            header: ["", "per", "encrypted", "MB/s"] + Self.columns.map(\.title) + ["allocations"],
            groups: grouped(cells)
        )
        let peer = Table(
            title: "SealedDB encrypted against GRDB plain",
            wordColumns: 2,
            header: ["", "per", "SealedDB encrypted", "GRDB plain", "ratio"],
            groups: grouped { row in
                guard let ratio = row.ratio(.encryptedAgainstPeer) else { return nil }
                let times = [row.series(.encrypted, .sealed), row.series(.plain, .grdb)].map { series in
                    series.map { Format.time(nanoseconds: $0.nanoseconds.median) } ?? ""
                }
                return [row.info.title, row.info.unit] + times + [Format.ratio(ratio)]
            }
        )
        let goals = Table(
            title: "Goals",
            wordColumns: 1,
            header: ["", "goal", "measured", ""],
            groups: [
                ("", report.goals.map { [$0.title, $0.wanted, Format.ratio($0.spread), $0.isMet ? "met" : "missed"] })
            ]
        )
        return [all, peer, goals, highlights].filter { table in table.groups.contains { !$0.rows.isEmpty } }
    }

    /// How the numbers are to be read.
    var explanation: String {
        let rounds = "\(report.rounds) round\(report.rounds == 1 ? "" : "s") of \(report.samplesPerRound) samples"
        return """
            Ratios of times, \(rounds): the median round, and in brackets the lowest and the highest. \
            Below 1, the first is faster. Times are medians; allocations are those of the encrypted SealedDB.
            """
    }

    var terminal: String {
        var lines: [String] = []
        for table in tables {
            let rows = [table.header] + table.groups.flatMap(\.rows)
            let widths = table.header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
            func line(_ cells: [String]) -> String {
                zip(cells, widths).enumerated().map { index, cell in
                    cell.0.padded(to: cell.1, onTheLeft: index >= table.wordColumns)
                }.joined(separator: "  ")
            }
            lines += ["", table.title.uppercased(), "", line(table.header)]
            for group in table.groups { lines += (group.name.isEmpty ? [] : ["", group.name]) + group.rows.map(line) }
        }
        return (lines + ["", explanation]).joined(separator: "\n")
    }

    var markdown: String {
        var lines = [
            "# What encryption costs: \(report.date.prefix(10))", "", explanation, "",
            "- " + report.environment.map { "\($0.name): \($0.value)" }.joined(separator: "\n- "),
        ]
        for table in tables.reversed() {
            lines += ["", "## \(table.title)"]
            for group in table.groups {
                if !group.name.isEmpty { lines += ["", "### \(group.name)"] }
                lines += ["", "| " + table.header.joined(separator: " | ") + " |"]
                lines.append("|" + table.header.indices.map { $0 < table.wordColumns ? "---|" : "---:|" }.joined())
                lines += group.rows.map { "| " + $0.joined(separator: " | ") + " |" }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension Report {
    /// What one has to know about a machine to compare its numbers with another's.
    var environment: [(name: String, value: String)] {
        var result = [
            ("Date", date),
            (
                "Run",
                """
                \(isQuick ? "quick" : "full"), \(rounds) rounds of \(samplesPerRound) samples of \
                \(Format.number(sampleMilliseconds)) ms, \(Format.number(seconds / 60)) minutes
                """
            ),
            ("Processor", "\(machine.processor), \(machine.processors) cores"),
            ("Features", machine.features.joined(separator: " ")),
            ("Memory", "\(machine.memory) MiB"),
            ("System", "\(machine.system), Linux \(machine.kernel)"),
            ("Stores on", machine.fileSystem),
            (
                "Load average",
                "\(Format.number(machine.loadBefore)) before, \(Format.number(machine.loadAfter)) after"
            ),
            ("Swift", machine.swift),
        ]
        if let encrypted {
            let version = "SQLCipher \(encrypted.cipherVersion), SQLite \(encrypted.sqliteVersion)"
            result.append(("Encrypted engine", "\(version), \(encrypted.cryptoVersion)"))
        }
        if let plain {
            result.append(("Plain engine", "SQLite \(plain.sqliteVersion)"))
            result.append(("Peer", "GRDB \(plain.grdbVersion), with the plain engine"))
        }
        if !packageIndex.isEmpty { result.append(("Package index", packageIndex)) }
        if !filters.isEmpty { result.append(("Only", filters.joined(separator: ", "))) }
        return result
    }
}
