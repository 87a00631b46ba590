import Wire

/// The charts of the page; each is empty if its benchmarks were left out.
struct HTMLCharts {
    let report: Report

    // MARK: Ratios

    var encryption: String {
        let rows = Highlights.rows(report).compactMap { label, row -> (label: String, bars: [BarChart.Bar])? in
            guard let ratio = row.ratio(.encryption) else { return nil }
            return (label, [BarChart.Bar(value: ratio, style: "encrypted", tip: tip(row, ratio))])
        }
        return BarChart(label: "Encrypted against plain", rows: rows, showsRatios: true).svg
    }

    var wrapper: String {
        let ids = [
            "bind.integer.prepared", "bind.real.prepared", "bind.text.prepared", "bind.blob.prepared",
            "bind.mixed.prepared", "bind.mixed.cached", "bind.mixed.prepared-any", "bind.mixed.cached-any",
            "bind.mixed.interpolated", "bind.mixed.named", "read.integer.index", "read.integer.tuple",
            "read.text.copied", "read.blob.copied", "read.mixed.copied", "read.mixed.name", "read.mixed.value",
            "read.mixed.tuple", "read.mixed.codable", "read.mixed.dictionary", "point.warm.alone.typed",
            "point.warm.transaction.typed", "point.warm.transaction.any", "point.small.transaction.typed",
            "point.queue",
        ]
        let rows = ids.compactMap { id -> (label: String, bars: [BarChart.Bar])? in
            guard let row = report.row(id), let own = row.ratio(.wrapperPlain) else { return nil }
            let bars = [(own, "sealed"), (row.ratio(.peerInC), "grdb")].compactMap { spread, style in
                spread.map { BarChart.Bar(value: $0, style: style, tip: tip(row, $0)) }
            }
            return (short(row.info), bars)
        }
        let legend = """
            <div class="legend"><span class="key sealed">SealedDB</span><span class="key grdb">GRDB</span></div>
            """
        return legend
            + BarChart(label: "SealedDB and GRDB against C", rows: rows, showsRatios: true).svg
    }

    private func short(_ info: CaseInfo) -> String {
        let verb = info.group == "Bind" ? "Bind " : info.group == "Read" ? "Read " : "Point query, "
        return verb
            + info.title.replacing("Int64, String, Double, Data, NULL", with: "mixed")
            .replacing("statement prepared once", with: "prepared").replacing("SQL text each time", with: "SQL text")
            .replacing("all pages cached", with: "cached").replacing("500 in a transaction", with: "in transaction")
            .replacing("and C copies the bytes too", with: "C copies too")
            .replacing("a queue's block for each; C without a lock", with: "a block for each")
    }

    private func tip(_ row: Report.Row, _ ratio: Spread) -> String {
        "\(row.info.title): \(Format.ratio(ratio))"
    }

    // MARK: Ciphers

    /// Microseconds for a page of a cold scan.
    var ciphers: String {
        let names = ["no-key", "no-hmac", "sha1", "sha256", "default", "memory-security"]
        var rows: [(label: String, bars: [BarChart.Bar])] = []
        func add(_ label: String, _ spread: Spread?, _ style: String) {
            guard let spread = spread?.scaled(by: 1e-3) else { return }
            rows.append((label, [.init(value: spread, style: style, tip: "\(label): \(Format.ratio(spread)) µs")]))
        }
        add("plain SQLite", report.row("cipher.default.scan")?.series(.plain, .c)?.nanoseconds, "plain")
        for name in names {
            let row = report.row("cipher.\(name).scan")
            let label = row?.info.title.replacing("cold scan: ", with: "") ?? ""
            add(label, row?.series(.encrypted, .c)?.nanoseconds, name == "no-key" ? "plain" : "encrypted")
        }
        return BarChart(label: "Cold scan by cipher", rows: rows, showsRatios: false, unit: " µs").svg
    }

    func pageSizes(_ work: String, title: String) -> String {
        let sizes = [1024, 2048, 4096, 8192, 16384, 32768, 65536]
        let lines = [(EngineKind.encrypted, "encrypted"), (.plain, "plain")].map { engine, style in
            LineChart.Line(
                name: style,
                style: style,
                points: sizes.compactMap { size in
                    let name = size == 4096 ? "default" : "page-\(size)"
                    let series = report.row("cipher.\(name).\(work)")?.series(engine, .sealed)
                    return series.map { (Double(size), $0.nanoseconds.scaled(by: 1e-3)) }
                }
            )
        }.filter { $0.points.count > 1 }
        return LineChart(
            label: title,
            xTitle: "page size",
            yTitle: "µs",
            lines: lines,
            isLogarithmic: true,
            xFormat: { "\(Int($0) / 1024) KiB" },
            yFormat: Format.tick
        ).svg
    }

    // MARK: Throughput

    func batches(_ journal: String) -> String {
        let lines = ["full", "normal", "off"].flatMap { synchronous in
            [(EngineKind.encrypted, ""), (.plain, " dashed")].map { engine, dash in
                LineChart.Line(
                    name: "\(synchronous.uppercased()), \(engine.rawValue)",
                    style: synchronous + dash,
                    points: [1, 10, 100, 1000].compactMap { batch in
                        let row = report.row("transaction.\(journal).\(synchronous).\(batch)")
                        let series = row?.series(engine, .sealed)
                        return series.map { (Double(batch), $0.nanoseconds.inverted(times: 1e9)) }
                    }
                )
            }
        }.filter { $0.points.count > 1 }
        return LineChart(
            label: "Rows a second against rows in a transaction",
            xTitle: "rows in a transaction",
            yTitle: "rows a second",
            lines: lines,
            isLogarithmic: true,
            xFormat: Format.tick,
            yFormat: si
        ).svg
    }

    func threads(_ kind: String, unit: String) -> String {
        var series: [(String, String, EngineKind, Subject, String)] = [
            ("SealedDB encrypted", "encrypted", .encrypted, .sealed, kind),
            ("SealedDB plain", "plain", .plain, .sealed, kind), ("GRDB plain", "grdb", .plain, .grdb, kind),
            ("C encrypted", "encrypted dashed", .encrypted, .c, kind),
        ]
        let sharesCommits = kind == "writers"
        if sharesCommits {
            series.append(("SealedDB encrypted, sharing commits", "limit", .encrypted, .sealed, "batched"))
        }
        let lines = series.map { name, style, engine, subject, kind in
            LineChart.Line(
                name: name,
                style: style,
                points: [1, 2, 4, 8, 64].compactMap { threads in
                    let series = report.row("concurrency.\(kind).\(threads)")?.series(engine, subject)
                    return series.map { (Double(threads), $0.nanoseconds.inverted(times: 1e9)) }
                }
            )
        }.filter { $0.points.count > 1 }
        let cores = Double(report.machine.processors)
        return LineChart(
            label: "\(unit) a second against threads",
            xTitle: kind,
            yTitle: "\(unit) a second",
            lines: lines,
            isLogarithmic: sharesCommits,
            xFormat: { "\(Int($0))" },
            yFormat: si,
            mark: [1, 2, 4, 8].contains(cores) ? (cores, "cores") : nil
        ).svg
    }

    private func si(_ value: Double) -> String {
        switch value {
        case 1e6...: "\(Format.tick(value / 1e6)) M"
        case 1e3...: "\(Format.tick(value / 1e3)) k"
        default: Format.tick(value)
        }
    }

    // MARK: The physical limit

    var limit: String {
        var rows: [(label: String, bars: [BarChart.Bar])] = []
        func add(_ label: String, _ row: Report.Row?, _ engine: EngineKind, _ subject: Subject, _ style: String) {
            guard let spread = row?.series(engine, subject)?.nanoseconds.scaled(by: 1e-3) else { return }
            rows.append((label, [.init(value: spread, style: style, tip: "\(label): \(Format.ratio(spread)) µs")]))
        }
        let labels = [
            ("limit.aes-decrypt", "decrypt, AES-256-CBC"), ("limit.hmac", "authenticate, HMAC-SHA512"),
            ("limit.read", "both, contexts made once"), ("limit.read-as-sqlcipher", "both, as SQLCipher 4.6 does"),
        ]
        for (id, label) in labels { add("libcrypto: \(label)", report.row(id), .encrypted, .c, "limit") }
        add("cold scan, plain", report.row("scan.cold"), .plain, .sealed, "plain")
        add("cold scan, encrypted", report.row("scan.cold"), .encrypted, .sealed, "encrypted")
        return BarChart(label: "Microseconds for a page", rows: rows, showsRatios: false, unit: " µs").svg
    }

    /// How much of a cold scan is what libcrypto needs at least, in percent.
    var shareOfLimit: Double? {
        guard let scan = report.row("scan.cold")?.series(.encrypted, .sealed)?.nanoseconds.median,
            let limit = report.row("limit.read")?.series(.encrypted, .c)?.nanoseconds.median
        else { return nil }
        return (limit / scan * 100).rounded()
    }
}
