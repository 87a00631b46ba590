import CBaseline
import Foundation
public import Wire

/// All cases, and who takes part in them.
public struct Suite {
    /// In the order of the table.
    public let cases: [CaseInfo]
    private let makers: [Subject: [String: Maker]]
    private let fixtures: Fixtures

    /// - Parameters:
    ///   - directory: where stores are made; it is the caller's to remove.
    ///   - isQuick: smaller stores.
    ///   - packageFile: the package index; `nil` leaves its cases out.
    public init(directory: String, isQuick: Bool, packageFile: String?) {
        precondition(baseline_start() == 0, "SQLite was used before.")
        fixtures = Fixtures(directory: directory, isQuick: isQuick, packageFile: packageFile)
        makers = [.c: CMakers.all, .sealed: SealedMakers.all, .grdb: GRDBMakers.all]
        let makers = makers
        let all =
            BindCases.infos + ReadCases.infos + PointCases.infos + ScanCases.infos + TransactionCases.infos
            + ConcurrencyCases.infos + OpenCases.infos + SlotCases.infos + WholeStoreCases.infos + LargeStoreCases.infos
            + ReplicationCases.infos + FunctionCases.infos + FullTextCases.infos + BlobCases.infos
            + (packageFile == nil ? [] : PackageCases.infos) + CipherCases.infos + LimitCases.infos
        cases = all.compactMap { info in
            var info = info
            info.subjects = Subject.allCases.filter { makers[$0]?[info.id] != nil }
            return info.subjects.isEmpty ? nil : info
        }
    }

    /// Makes the subjects of a case ready.
    public func begin(
        _ id: String,
        _ subjects: [Subject] = Subject.allCases,
        sampleNanoseconds: Double
    ) throws -> PreparedCase {
        let present = makers.filter { subjects.contains($0.key) }.compactMapValues { $0[id] }
        guard !present.isEmpty else { throw Failure("There is no case \(id).") }
        return try PreparedCase(present, fixtures: fixtures, sampleNanoseconds: sampleNanoseconds)
    }

    public static var engine: EngineInfo {
        func text(_ sql: String) -> String {
            guard let result = baseline_text(sql) else { return "" }
            defer { free(result) }
            return String(cString: result)
        }
        return EngineInfo(
            sqliteVersion: String(cString: baseline_sqlite_version()),
            cipherVersion: text("PRAGMA cipher_version"),
            cipherProvider: text("PRAGMA cipher_provider_version"),
            grdbVersion: GRDBMakers.version,
            cryptoVersion: String(cString: baseline_crypto_version()),
            compileOptions: text("PRAGMA compile_options").split(separator: "\n").map(String.init)
        )
    }
}
