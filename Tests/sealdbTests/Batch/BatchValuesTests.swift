import Foundation
import SealedDB
import Testing

@testable import sealdb

/// Options of a batch, and what is computed from them.
@Suite(.hangLimit)
struct BatchValuesTests {
    // MARK: Options

    private func options(
        maxRate: Double? = nil,
        keepOld: String? = nil,
        replaces: Bool = false,
        former: String? = nil
    ) -> RotationOptions {
        var options = RotationOptions()
        options.journal = nil
        options.resumeOnly = false
        options.keepOld = false
        options.keepOldSuffix = keepOld
        options.replaceKeyFiles = replaces
        options.formerKeySuffix = former
        options.maxRate = maxRate
        options.deadline = nil
        return options
    }

    /// At no speed at all, nothing would ever be done.
    @Test(arguments: [0, -1, 0.0009, 1_000_001, .infinity, .nan] as [Double])
    func speedsThatThereAreNot(rate: Double) {
        #expect(throws: (any Error).self) { try options(maxRate: rate).validate() }
    }

    @Test(arguments: [(0.001, 1000), (2.5, 2_500_000), (1_000_000, 1e12)] as [(Double, Double)])
    func megabytesASecond(rate: Double, bytes: Double) throws {
        let options = options(maxRate: rate)
        try options.validate()
        #expect(options.rateLimit?.bytesPerSecond == bytes)
    }

    @Test func endingsOfFormerKeyFiles() {
        #expect(options().formerKeyEnding == nil)
        #expect(options(replaces: true).formerKeyEnding == ".old")
        #expect(options(replaces: true, former: ".a").formerKeyEnding == ".a")
        #expect(options(former: ".a").formerKeyEnding == ".a")
    }

    /// Behind -- are names of stores, whatever they look like.
    @Test func namesOfStoresAreNoOptions() {
        let arguments = ["rotate", "--keep-old=.x", "--replace-key-files=.y", "--keep-old", "--", "--keep-old=.z"]
        #expect(
            RotationOptions.normalized(arguments) == [
                "rotate", "--keep-old-suffix=.x", "--former-key-suffix=.y", "--keep-old", "--", "--keep-old=.z",
            ]
        )
    }

    @Test(arguments: [(1, true), (64, true), (0, false), (65, false)])
    func numbersOfJobs(count: Int, isAllowed: Bool) {
        var options = BatchOptions()
        options.givenJobs = count
        if isAllowed {
            #expect(throws: Never.self) { try options.validate() }
        } else {
            #expect(throws: (any Error).self) { try options.validate() }
        }
    }

    /// A store beside a list is one of several: the others must not be left out.
    @Test(
        arguments: [
            (["a"], nil, nil, true), (["a"], "list", nil, false), (["a"], nil, "list", false), (["-"], nil, nil, false),
            (["a", "b"], nil, nil, false), ([], "list", nil, false),
        ] as [([String], String?, String?, Bool)]
    )
    func aSingleStore(stores: [String], list: String?, nulls: String?, isSingle: Bool) {
        var options = StoreListOptions()
        options.stores = stores
        options.fromFile = list
        options.fromFileWithNULs = nulls
        #expect(options.isSingle == isSingle)
    }

    // MARK: Names of keys

    /// Without its last extension, if it has one.
    @Test(arguments: [
        ("/nowhere/app.db", "app"), ("/nowhere/a.b.c", "a.b"), ("/nowhere/plain", "plain"), ("/nowhere/.db", ".db"),
        ("/nowhere/.a.db", ".a"), ("/nowhere.d/plain", "plain"),
    ])
    func stems(path: String, stem: String) throws {
        let origin = try KeySourceText("key-file:/k/{stem}").origin(for: StoreItem(path))
        guard case .source(.keyFile(let file)) = origin else {
            Issue.record("\(origin)")
            return
        }
        #expect(file == "/k/" + stem)
    }

    /// Whoever may write in a directory would choose the options of a program that somebody else runs.
    @Test func namesThatLookLikeOptions() throws {
        let source = try KeySourceText("key-command:/bin/show -q {stem} {path}")
        for path in ["/nowhere/--help.db", "/nowhere/-rf x.db"] {
            let error = #expect(throws: Failure.self) { try source.origin(for: StoreItem(path)) }
            #expect(
                error?.status == .configuration && error?.message.contains("for an option") == true,
                "\(error as Any)"
            )
        }
        guard case .source(.keyCommand(let words, _)) = try source.origin(for: StoreItem("/nowhere/a-b.db")) else {
            Issue.record("It is no command.")
            return
        }
        #expect(words == ["/bin/show", "-q", "a-b", "/nowhere/a-b.db"])
    }

    // MARK: Space

    /// The largest copies may be the ones that exist at the same time, wherever they stand in the list.
    @Test func spaceForTheLargest() throws {
        let sandbox = try Sandbox()
        var status = statvfs()
        try #require(statvfs(sandbox.directory, &status) == 0)
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        for name in ["a", "b", "large"] { try sandbox.write(name, "x") }
        // Of which nothing is on the disk.
        try sandbox.truncate("large", to: free + free / 2)
        let small = try ["a", "b"].map { try StoreItem(sandbox.path($0)) }
        let all = small + [try StoreItem(sandbox.path("large"))]
        #expect(throws: Never.self) { try SpaceCheck.check(small, jobs: 1, keepsOld: true) }
        for (keepsOld, advice) in [(false, "or lower --jobs."), (true, "or do not keep the old files.")] {
            for stores in [all, all.reversed()] {
                let failure = #expect(throws: Failure.self) {
                    try SpaceCheck.check(stores, jobs: 1, keepsOld: keepsOld)
                }
                #expect(failure?.status == .inputOutput)
                #expect(failure?.message.hasSuffix(advice) == true, "\(failure?.message ?? "")")
            }
        }
    }

    /// A store with key slots is copied only for a new data key.
    @Test func whatIsCopied() throws {
        let sandbox = try Sandbox()
        let store = try StoreItem(sandbox.path("db"))
        func copies(_ reencryption: StoreRotation.Reencryption?) throws -> Bool {
            StoreRotation(
                old: .key(try Key.random()),
                new: nil,
                ciphers: CipherAssignment(given: nil, configuration: nil),
                lockWait: 0,
                oldFileSuffix: nil,
                ignoresUnseenUsers: false,
                reencryption: reencryption,
                keyFiles: nil
            ).copies(store)
        }
        let reencryption = StoreRotation.Reencryption(keep: [], removesOthers: true, asks: false)
        #expect(try copies(nil) && copies(reencryption))
        try sandbox.write("db" + KeySlots.fileEndings[0], "slots")
        #expect(try !copies(nil) && copies(reencryption))
    }
}
