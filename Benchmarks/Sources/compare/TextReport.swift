import Wire

/// The columns that the terminal and Markdown share.
struct TextReport {
    let report: Report

    static let columns: [(title: String, kind: RatioKind)] = [
        ("encrypted / plain", .encryption), ("SealedDB / C", .wrapper), ("SealedDB / GRDB", .peer),
        ("encrypted / GRDB plain", .encryptedAgainstPeer),
    ]

    private func cells(_ row: Report.Row) -> [String] {
        let own = row.info.isForCAlone ? Subject.c : Subject.sealed
        let series = row.series(.encrypted, own)
        let time = series.map { Format.time(nanoseconds: $0.nanoseconds.median) } ?? ""
        let allocations = series.map { Format.number($0.allocations) } ?? ""
        return [row.info.title, row.info.unit, time]
            + Self.columns.map { column in
                let kind = row.info.isForCAlone && column.kind == .encryption ? .encryptionInC : column.kind
                return Format.ratio(row.ratio(kind))
            } + [allocations]
    }

    private var titles: [String] { ["", "per", "encrypted"] + Self.columns.map(\.title) + ["allocations"] }

    private var groups: [(name: String, rows: [Report.Row])] {
        var result: [(name: String, rows: [Report.Row])] = []
        for row in report.rows {
            if result.last?.name == row.info.group {
                result[result.count - 1].rows.append(row)
            } else {
                result.append((row.info.group, [row]))
            }
        }
        return result
    }

    /// One sentence on how the numbers are to be read.
    var explanation: String {
        let rounds = "\(report.rounds) round\(report.rounds == 1 ? "" : "s") of \(report.samplesPerRound) samples"
        return """
            Ratios of times, \(rounds): the median round, and in brackets the lowest and the highest. \
            Below 1, the first is faster. Times are medians; allocations are those of the encrypted SealedDB.
            """
    }

    var terminal: String {
        var lines: [String] = []
        let table = groups.map { group in (group.name, group.rows.map(cells)) }
        let widths = titles.indices.map { column in
            ([titles] + table.flatMap(\.1)).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            zip(cells, widths).enumerated().map { index, cell in
                cell.0.padded(to: cell.1, onTheLeft: index >= 2)
            }.joined(separator: "  ")
        }
        lines.append(line(titles))
        for (name, rows) in table {
            lines += ["", name] + rows.map(line)
        }
        return (lines + ["", explanation]).joined(separator: "\n")
    }

    var markdown: String {
        var lines = [
            "# What encryption costs: \(report.date.prefix(10))", "", explanation, "",
            "- " + report.environment.map { "\($0.name): \($0.value)" }.joined(separator: "\n- "),
        ]
        for group in groups {
            lines += ["", "## \(group.name)", ""]
            lines.append("| " + ([""] + titles.dropFirst()).joined(separator: " | ") + " |")
            lines.append("|" + titles.indices.map { $0 < 2 ? "---|" : "---:|" }.joined())
            lines += group.rows.map { "| " + cells($0).joined(separator: " | ") + " |" }
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
