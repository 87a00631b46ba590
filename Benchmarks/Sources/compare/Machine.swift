import Foundation

/// Where a comparison ran.
struct Machine: Codable {
    var processor: String
    var processors: Int
    /// Of those that matter to ciphers: `aes`, `vaes`, `sha_ni`, `pclmulqdq`, `avx2`, `avx512f`; on ARM `aes`, `sha1`,
    /// `sha2`, `sha512`.
    var features: [String]
    /// MiB.
    var memory: Int
    var kernel: String
    var system: String
    /// What the stores were on.
    var fileSystem: String
    var swift: String
    /// Load average over a minute, before and after.
    var loadBefore: Double
    var loadAfter: Double

    init(storesIn directory: String, swift: String) {
        let information = Self.text("/proc/cpuinfo")
        func field(_ names: [String]) -> String? {
            information.split(separator: "\n").first { line in names.contains { line.hasPrefix($0) } }?
                .split(separator: ":", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
        processor = field(["model name", "Model"]) ?? "unknown"
        processors = ProcessInfo.processInfo.activeProcessorCount
        let flags = Set((field(["flags", "Features"]) ?? "").split(separator: " ").map(String.init))
        features = ["aes", "vaes", "pclmulqdq", "sha_ni", "sha1", "sha2", "sha512", "avx2", "avx512f"].filter {
            flags.contains($0)
        }
        memory = Int(ProcessInfo.processInfo.physicalMemory >> 20)
        kernel = Self.text("/proc/sys/kernel/osrelease").trimmingCharacters(in: .whitespacesAndNewlines)
        system =
            Self.text("/etc/os-release").split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }?
            .dropFirst("PRETTY_NAME=".count).trimmingCharacters(in: CharacterSet(charactersIn: "\"")) ?? "Linux"
        fileSystem = Self.output("stat", ["--file-system", "--format=%T", directory])
        self.swift = swift
        loadBefore = Self.load
        loadAfter = .nan
    }

    mutating func finish() { loadAfter = Self.load }

    static var load: Double {
        text("/proc/loadavg").split(separator: " ").first.flatMap { Double($0) } ?? .nan
    }

    private static func text(_ path: String) -> String {
        // Files of /proc have no size to read by.
        guard let file = FileHandle(forReadingAtPath: path), let data = try? file.readToEnd() else { return "" }
        return String(decoding: data, as: UTF8.self)
    }

    /// What a command prints; empty if it cannot be run.
    static func output(_ command: String, _ arguments: [String]) -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [command] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return "" }
        let data = (try? pipe.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// What `openssl speed` says, as a second opinion on the physical limit.
struct OpenSSLSpeed: Codable {
    var name: String
    var megabytesPerSecond: Double

    /// Empty if there is no `openssl`. Takes a second for each.
    static func measure() -> [OpenSSLSpeed] {
        let runs = [
            ("AES-256-CBC, encrypt", ["-evp", "aes-256-cbc"]),
            ("AES-256-CBC, decrypt", ["-evp", "aes-256-cbc", "-decrypt"]),
            ("HMAC-SHA512", ["-hmac", "sha512"]), ("HMAC-SHA256", ["-hmac", "sha256"]),
            ("HMAC-SHA1", ["-hmac", "sha1"]),
        ]
        return runs.compactMap { name, arguments in
            let text = Machine.output("openssl", ["speed", "-elapsed", "-seconds", "1", "-bytes", "4016"] + arguments)
            // The last line ends in thousands of bytes a second, such as 541234.56k.
            guard let last = text.split(whereSeparator: \.isWhitespace).last, last.hasSuffix("k"),
                let thousands = Double(last.dropLast())
            else { return nil }
            return OpenSSLSpeed(name: name, megabytesPerSecond: (thousands / 1000).rounded())
        }
    }
}
