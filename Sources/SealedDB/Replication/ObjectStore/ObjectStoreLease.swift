#if ObjectStores
    internal import CCurl
    import Foundation

    /// Who writes to a repository in an object store: an object that says so, and is written anew while it lasts.
    ///
    /// It is over when its owner says so, when the owner's process is known to have ended (on the same machine), and when it
    /// was not renewed for ``seconds``, by the clock of the object store. It keeps two shippers apart that are started by
    /// mistake. It is no lock: one that was held up for so long that its lease was over may still finish one request, and in
    /// a store that does not know conditions two that begin in the same moment may both believe that they have it, until the
    /// first of them renews it. What keeps them from doing harm then are the names of objects, which are written once.
    struct ObjectStoreLease {
        static let name = "lease"
        static let seconds: Int64 = 120
        /// It is renewed when this has passed.
        private static let renewal: Duration = .seconds(30)
        private static let title = "SealedDB lease 1"
        private static let mostSnapshots = 64

        /// What messages call the process.
        let owner: String
        private let token: String
        /// The boot and the name space in which the number of the process means something.
        private let place: String
        private let process: Int32
        /// When it began, so that another process with its number is not taken for it.
        private let began: String
        var isFree = false
        /// The names of the newest snapshots.
        var snapshots: [String] = []
        private var renewed = ContinuousClock.now

        /// A new one, of this process.
        static func own() throws(DatabaseError) -> ObjectStoreLease {
            var name = [CChar](repeating: 0, count: 256)
            // The last byte stays zero. Without a name the number alone is told.
            let host =
                gethostname(&name, 255) == 0
                ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
            return ObjectStoreLease(
                owner: "process \(getpid())\(host.isEmpty ? "" : " on \(host)")",
                token: try FileSystem.randomName() + FileSystem.randomName(),
                place: ownPlace,
                process: getpid(),
                began: beginning(of: getpid()) ?? ObjectStoreLease.unknown
            )
        }

        private static let unknown = "-"
        /// The tokens of the leases that this process holds or is about to take.
        private static let claimed = Guarded(Set<String>())

        /// Whoever claims it gives it up again. What is not given back in the store is over then for this process.
        func claim() { _ = ObjectStoreLease.claimed.withLock { $0.insert(token) } }

        func giveUp() { _ = ObjectStoreLease.claimed.withLock { $0.remove(token) } }

        private init(owner: String, token: String, place: String, process: Int32, began: String) {
            (self.owner, self.token, self.place) = (owner, token, place)
            (self.process, self.began) = (process, began)
        }

        /// `nil` for none, and for what is none.
        init?(_ bytes: [UInt8]?) {
            // Only the names of snapshots are asked for, which are a help.
            guard let bytes, let lease = try? ObjectStoreLease(parsing: bytes, named: ObjectStoreLease.name) else {
                return nil
            }
            self = lease
        }

        init(parsing bytes: [UInt8], named name: String) throws(DatabaseError) {
            let text = try ObjectText(parsing: bytes, title: ObjectStoreLease.title, of: name)
            guard let owner = ObjectText.unescaped(try text.value("owner")),
                let place = ObjectText.unescaped(try text.value("place"))
            else { throw text.missing("owner") }
            self.init(
                owner: owner,
                token: try text.value("token"),
                place: place,
                process: Int32(try text.number("process", in: 0...Int64(Int32.max))),
                began: try text.value("began")
            )
            isFree = try text.number("free", in: 0...1) == 1
            snapshots = text.values("snapshot").filter { name in
                if case .snapshot? = ObjectName(name) { true } else { false }
            }
        }

        func bytes() throws(DatabaseError) -> [UInt8] {
            var text = ObjectText(title: ObjectStoreLease.title)
            text.add("owner", ObjectText.escaped(owner))
            text.add("token", token)
            text.add("place", ObjectText.escaped(place))
            text.add("process", process)
            text.add("began", began)
            text.add("free", isFree ? 1 : 0)
            for snapshot in snapshots { text.add("snapshot", snapshot) }
            return try text.sealed()
        }

        func isSame(as other: ObjectStoreLease) -> Bool { token.isSame(as: other.token) }

        var isDue: Bool { ContinuousClock.now - renewed >= ObjectStoreLease.renewal }

        mutating func renew() { renewed = .now }

        mutating func add(_ snapshot: String) {
            snapshots.removeAll { $0.isSame(as: snapshot) }
            snapshots.append(snapshot)
            snapshots.removeFirst(max(0, snapshots.count - ObjectStoreLease.mostSnapshots))
        }

        /// Whether nobody holds it any more.
        /// - Parameter headers: of the answer with it. What they do not say does not make it over.
        func isOver(_ headers: [String: String]) -> Bool {
            if isFree { return true }
            if place != ObjectStoreLease.unknown, place.isSame(as: ObjectStoreLease.ownPlace) {
                if process == getpid(), began.isSame(as: ObjectStoreLease.beginning(of: process) ?? "") {
                    return ObjectStoreLease.claimed.withLock { !$0.contains(token) }
                }
                // That of another process is held as long as the process is there.
                if ProcessDescriptors.own == getpid(), began != ObjectStoreLease.unknown,
                    let found = ObjectStoreLease.beginning(of: process)
                {
                    return !found.isSame(as: began)
                }
                if ProcessDescriptors.hasEnded(process, ESRCH) { return true }
                // /proc hides it, or another process has its number now. The age of the lease decides, as for one elsewhere.
            }
            guard let now = headers["date"].map({ curl_getdate($0, nil) }), now > 0,
                let last = headers["last-modified"].map({ curl_getdate($0, nil) }), last > 0
            else { return false }
            return Int64(now) - Int64(last) > ObjectStoreLease.seconds
        }

        /// The boot and the name space of processes; the sign for none if they cannot be had.
        private static var ownPlace: String {
            // What is missing is told by the result.
            guard let boot = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8),
                let space = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid")
            else { return unknown }
            return "\(boot.trimmingCharacters(in: .whitespacesAndNewlines)) \(space)"
        }

        /// When a process began, in ticks of the kernel; `nil` if that cannot be read.
        private static func beginning(of process: Int32) -> String? {
            guard let text = FileSystem.kernelText("/proc/\(process)/stat") else { return nil }
            // The name of the program, in brackets, may have spaces.
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            return fields.count > 20 ? String(fields[20]) : nil
        }
    }
#endif
