import Wire

/// One page with everything in it: no scripts, no files beside it, light and dark.
struct HTMLReport {
    let report: Report
    private let charts: HTMLCharts

    init(report: Report) {
        self.report = report
        charts = HTMLCharts(report: report)
    }

    var text: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>SealedDB: what encryption costs</title>
        <style>
        \(HTMLStyle.text)
        </style>
        </head>
        <body>
        \(header)
        \(tiles)
        \(sections)
        \(goals)
        \(tables)
        \(facts)
        <footer>Made by <code>Benchmarks/compare\(report.isQuick ? " --quick" : "")</code> of SealedDB. \
        Benchmarks/README.md tells what each benchmark does, and what is fair about it.</footer>
        </body>
        </html>

        """
    }

    private var header: String {
        """
        <h1>What encryption costs, and what the wrapper costs</h1>
        <p>SealedDB on SQLCipher \(escaped(report.encrypted?.cipherVersion ?? "–")) against the same code on plain \
        SQLite \(escaped(report.plain?.sqliteVersion ?? "–")), with C on the same engine and GRDB \
        \(escaped(report.plain?.grdbVersion ?? "–")) \
        beside it. \(escaped(report.machine.processor)), \(report.machine.processors) cores, \
        \(escaped(report.machine.system)), \(report.date.prefix(10)).</p>
        <p>\(escaped(TextReport(report: report).explanation)) Both engines are measured in turn, moments apart, so that \
        what slows the machine down slows both; the processes are new in every round.</p>
        """
    }

    // MARK: In a nutshell

    private var tiles: String {
        func ratio(_ id: String, _ kind: RatioKind, _ label: String) -> String {
            guard let spread = report.row(id)?.ratio(kind) else { return "" }
            return tile(
                "×" + Format.count(spread.median),
                label,
                "\(Format.count(spread.low)) to \(Format.count(spread.high))"
            )
        }
        func time(_ id: String, _ label: String) -> String {
            guard let spread = report.row(id)?.series(.encrypted, .sealed)?.nanoseconds else { return "" }
            return tile(Format.time(nanoseconds: spread.median), label, "")
        }
        let tiles = [
            ratio("point.warm.transaction.typed", .encryption, "encrypted, point query"),
            ratio("scan.cold", .encryption, "encrypted, every page read anew"),
            ratio("transaction.wal.full.autocommit", .encryption, "encrypted, a durable row"),
            ratio("packages.load", .encryption, "encrypted, loading real data"),
            time("open.raw", "to open with a raw key"), time("open.passphrase", "to open with a passphrase"),
            ratio("read.mixed.tuple", .wrapperPlain, "SealedDB against C, reading rows"),
            ratio("packages.load", .encryptedAgainstPeer, "SealedDB encrypted against GRDB in the clear, loading"),
        ]
        return "<div class=\"tiles\">\(tiles.joined())</div>"
    }

    private func tile(_ value: String, _ label: String, _ detail: String) -> String {
        "<div class=\"tile\"><b>\(escaped(value))</b><span>\(escaped(label))</span><span>\(escaped(detail))</span></div>"
    }

    // MARK: Charts

    private var sections: String {
        let share = charts.shareOfLimit.map {
            " <strong>Of a cold scan's time, \(Int($0)) % is what libcrypto needs at least.</strong>"
        }
        return [
            section(
                "What encryption costs",
                """
                SealedDB encrypted against SealedDB in the clear. A page is decrypted when it comes from the file and \
                encrypted when it goes there; what is cached costs nothing. Bars end at the median round, whiskers at the \
                lowest and the highest.
                """,
                [("", charts.encryption)]
            ),
            section(
                "What the wrapper costs",
                """
                The same work in C on the same plain engine is ×1. C reads texts and blobs where they lie, unless it says that it \
                copies them; Swift makes values that one can keep. The tables below have all types and forms.
                """,
                [("", charts.wrapper)]
            ),
            section(
                "The ways to encrypt",
                "A cold scan, microseconds for a page, in C. Without HMAC a changed page goes unnoticed.",
                [("", charts.ciphers)]
            ),
            section(
                "Page size",
                "Larger pages cost less a byte and more a query. SQLCipher's default, 4 KiB, is a good one.",
                [
                    ("Cold scan: µs a page", charts.pageSizes("scan", title: "Cold scan by page size")),
                    ("Cold point query: µs a query", charts.pageSizes("point", title: "Cold point query by page size")),
                ]
            ),
            section(
                "Rows in a transaction",
                "Where the disk is waited for, encryption hardly shows; what counts is how many rows share a commit.",
                [("WAL", charts.batches("wal")), ("Rollback journal", charts.batches("delete"))]
            ),
            section(
                "Threads",
                "Readers have a connection each; writers share one.",
                [
                    ("Readers: point queries", charts.threads("readers", unit: "queries")),
                    ("Writers: durable rows", charts.threads("writers", unit: "rows")),
                ]
            ),
            section(
                "The physical limit",
                """
                What libcrypto needs for one page of 4 KiB without a database, beside a cold scan. SQLCipher 4.6 makes new \
                contexts for each page.\(share ?? "")
                """,
                [("", charts.limit)]
            ),
        ].joined()
    }

    private func section(_ title: String, _ text: String, _ charts: [(title: String, svg: String)]) -> String {
        let cards = charts.filter { $0.svg.contains("<svg") }.map { chart in
            let title = chart.title.isEmpty ? "" : "<h3>\(escaped(chart.title))</h3>"
            return "<div class=\"card\">\(title)\(chart.svg)</div>"
        }
        guard !cards.isEmpty else { return "" }
        let body = cards.count > 1 ? "<div class=\"pair\">\(cards.joined())</div>" : cards.joined()
        return "<h2>\(escaped(title))</h2><p>\(text)</p>\(body)"
    }
}
