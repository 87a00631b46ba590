import Foundation
import Testing

@testable import sealdb

/// What a configuration file may say, and that everything else is refused with the number of its line.
@Suite(.hangLimit)
struct ConfigurationTextTests {
    private func file(_ text: String) throws -> ConfigurationFile { try ConfigurationFile(path: "/c", text) }

    private func message(_ text: String) -> String {
        do {
            _ = try file(text)
            return ""
        } catch {
            return ErrorReport.statusAndMessage(of: error).message
        }
    }

    @Test func everything() throws {
        let file = try file(
            """
              # a comment
            [defaults]
            lock-wait = 1.5
            jobs=4
            continue-on-error = yes
            progress = never
            max-rate = 20
            state-directory = /var/lib/sealdb
            rotate-after = 90d

            [store "/srv/a \\"b\\"/\\*.db"]
            \tkey-file = /etc/keys/{stem}.key
            kdf-iterations = 4000
            hmac = no
            rotate-after = 36h
            [store "/srv/**/*.db"]
            passphrase-command = /bin/show "two words" {name}
            compatibility = 3
            salt = 000102030405060708090a0b0c0d0e0f
            verify-after = 2w
            """
        )
        #expect(file.defaults.lockWait == 1.5 && file.defaults.jobs == 4 && file.defaults.continueOnError == true)
        #expect(file.defaults.progress == .never && file.defaults.maxRate == 20)
        #expect(file.defaults.stateDirectory == "/var/lib/sealdb" && file.stores.count == 2)
        let first = try StoreItem("/srv/a \"b\"/*.db")
        #expect(file.section(for: first)?.text.line == 11)
        let cipher = file.section(for: first)?.cipher
        #expect(cipher?.kdfIterations == 4000 && cipher?.usesHMAC == false)
        let limits = file.limits(of: first)
        #expect(limits.rotation == 36 * 3600 && limits.verification == nil)
        let second = try StoreItem("/srv/x/y/z.db")
        #expect(file.limits(of: second).rotation == 90 * 86400 && file.limits(of: second).verification == 14 * 86400)
        #expect(file.section(for: second)?.cipher.settings?.salt == Array(0...15))
        guard case .source(.passphraseCommand(let arguments, _)) = try file.keyOrigin(for: second) else {
            Issue.record("no command")
            return
        }
        #expect(arguments == ["/bin/show", "two words", "z.db"])
        #expect(try file.section(for: StoreItem("/srv.db")) == nil)
    }

    @Test(arguments: [
        ("lock-wait = 1", "line 1: A section"),
        ("[defaults]\nlock-wait", "line 2: A line is"),
        ("[defaults]\nlock-wait =", "line 2: lock-wait has no value"),
        ("[defaults]\nLock-Wait = 1", "line 2: A name consists"),
        ("[defaults]\nlock-wait = 86401", "line 2: lock-wait takes seconds"),
        ("[defaults]\nlock-wait = nan", "line 2: lock-wait takes seconds"),
        ("[defaults]\njobs = 4 # four", "line 2: A comment"),
        ("[defaults]\njobs = 0", "line 2: jobs takes"),
        ("[defaults]\njobs = 1\n\njobs = 1", "line 4: jobs occurs again"),
        ("[defaults]\njobs = 1\r\n", "line 2: The line holds a control character"),
        ("[defaults]\ncontinue-on-error = maybe", "line 2: continue-on-error takes"),
        ("[defaults]\nprogress = json", "line 2: progress takes"),
        ("[defaults]\nmax-rate = 0", "line 2: max-rate takes"),
        ("[defaults]\nstate-directory = lib", "line 2: state-directory takes"),
        ("[defaults]\nrotate-after = 90", "line 2: rotate-after takes"),
        ("[defaults]\nrotate-after = 0d", "line 2: rotate-after takes"),
        ("[defaults]\nbackup-after = 1d", "line 1: verify-after and backup-after need"),
        ("[defaults]\ncolour = red", "line 2: colour is unknown. Known are lock-wait"),
        ("[defaults]\nkey-file = /a", "line 2: key-file stands in a section [store"),
        ("[defaults]\n[store \"/a\"]\n[defaults]", "line 3: This section occurs again"),
        ("[store \"/a\"]\n[store \"/a\"]", "line 2: This section occurs again"),
        ("[store /a]", "line 1: A section begins"), ("[store \"/a]", "line 1: A section begins"),
        ("[store \"/a\" b]", "line 1: A section begins"), ("[]", "line 1: A section begins"),
        ("[store \"\"]", "line 1: A section begins"), ("[store", "line 1: A section begins"),
        ("[store]", "line 1: The sections are"), ("[stores \"/a\"]", "line 1: The sections are"),
        ("[defaults \"a\"]", "line 1: The sections are"), ("; comment", "line 1: A line is"),
        ("[store \"a/b\"]", "line 1: A pattern is"), ("[store \"/a/../b\"]", "line 1: A pattern is"),
        ("[store \"/a//b\"]", "line 1: A pattern is"), ("[store \"/a/[x\"]", "line 1: A pattern is"),
        ("[store \"/a\"]\njobs = 1", "line 2: jobs stands in a section [defaults]"),
        ("[store \"/a\"]\nkey-file = k", "line 2: key-file takes an absolute path"),
        ("[store \"/a\"]\nkey-file = {nam}", "line 2: In the template"),
        ("[store \"/a\"]\nkey-command = show", "line 2: key-command: takes the absolute path"),
        ("[store \"/a\"]\nkey-file = /a\nkey-ring = /b", "line 3: The section has two sources"),
        ("[store \"/a\"]\nkey-fd = 3", "line 2: key-fd is unknown"),
        ("[store \"/a\"]\ncompatibility = 5", "line 1: compatibility takes"),
        ("[store \"/a\"]\npage-size = big", "line 2: page-size takes a number"),
        ("[store \"/a\"]\nkdf-algorithm = md5", "line 2: kdf-algorithm takes"),
        ("[store \"/a\"]\nhmac = 0", "line 2: hmac takes"), ("[store \"/a\"]\nsalt = 00", "line 1: salt takes"),
    ]) func whatIsRefused(text: String, message: String) {
        #expect(self.message(text).hasPrefix(message), "\(self.message(text))")
    }

    @Test func allThatIsWrongIsToldAtOnce() {
        let message = message("[defaults]\njobs = x\ncolour = red\n[store \"a\"]")
        #expect(message.split(separator: "\n").map { $0.prefix(7) } == ["line 2:", "line 3:", "line 4:"], "\(message)")
    }

    /// A key in the wrong place is not shown on.
    @Test func noKeyIsShown() {
        let key = String(repeating: "0badc0de", count: 8)
        for text in [
            key, "[\(key)]", "[defaults]\n\(key)",
            "[store \"/a\"]\nkey = \(key)", "[store \"/a\"]\npassphrase = \(key)",
            "[store \"/a\"]\nkey-file = \(key)", "[store \"/a\"]\nkey-file: \(key)", "[defaults]\njobs = \(key)",
            "[store \"/a\"]\nsalt = \(key)", "[store \"/a\"]\nkey-ring = {dir}\(key)x{",
        ] {
            let message = message(text)
            #expect(!message.isEmpty && !message.contains("0badc0de"), "\(message)")
        }
        #expect(message("[store \"/a\"]\nkey = x").contains("never holds a key"))
        #expect(message("[store \"/a\"]\nkey-file = \(key)").contains("never holds a key"))
    }

    /// The first section wins, and it alone.
    @Test func theFirstSectionWins() throws {
        let file = try file(
            "[store \"/srv/a.db\"]\npage-size = 8192\n[store \"/srv/*.db\"]\nkey-ring = /r\nrotate-after = 1d"
        )
        #expect(try file.section(for: StoreItem("/srv/a.db"))?.cipher.pageSize == 8192)
        #expect(try !file.hasKey(for: StoreItem("/srv/a.db")) && file.hasKey(for: StoreItem("/srv/b.db")))
        #expect(try file.limits(of: StoreItem("/srv/a.db")).isEmpty)
    }

    @Test func whichFile() {
        let path = ConfigurationFile.path
        #expect(path(nil, [:]) == ("/etc/sealdb/sealdb.conf", true))
        #expect(path(nil, ["SEALDB_CONFIG": ""]) == ("/etc/sealdb/sealdb.conf", true))
        #expect(path(nil, ["SEALDB_CONFIG": "/x"]) == ("/x", false))
        #expect(path("/y", ["SEALDB_CONFIG": "/x"]) == ("/y", false))
    }
}
