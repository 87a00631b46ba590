#if ObjectStores
    import Foundation

    /// A repository in a bucket of an object store that has the interface of Amazon's S3.
    ///
    /// An object is written whole or not at all, and is durable when the store says so. The requests have the digest of what
    /// they write, so that a body that was cut off or changed is refused there.
    ///
    /// That no object is replaced: the store is asked for it by `If-None-Match`, if it knows that, which ``lease()`` finds
    /// out. If it does not, it is asked before whether the object is there; what lies between the two requests is left to the
    /// lease.
    ///
    /// Lists may be stale in stores that are not Amazon's. See ``ObjectStoreStorage/objects(under:)``.
    final class ObjectStoreStorage: RepositoryStorage {
        let name: String
        private let address: ObjectStoreAddress
        private let client: ObjectStoreClient
        /// Whether the store heeds `If-None-Match`; `nil` while that is not known.
        private var heedsConditions: Bool?
        /// `nil` without one.
        private var held: ObjectStoreLease?
        /// The names below `generations` that were removed under this lease.
        private var removed: Set<String> = []

        /// Larger ones are not read.
        private static let mostBytes = 1 << 30
        private static let mostBytesOfList = 1 << 24
        /// A list with more parts, of up to 1000 names, is not believed.
        private static let mostParts = 100_000

        convenience init(_ address: ObjectStoreAddress, _ access: RepositoryAccess) throws(DatabaseError) {
            let settings = try ObjectStoreSettings(
                ProcessInfo.processInfo.environment,
                for: address,
                allowsPlainHTTP: access.allowsPlainHTTP
            )
            self.init(address, try ObjectStoreClient(address, settings, access))
            guard Engine.isEncrypting else {
                throw DatabaseError(
                    extendedCode: SQLITE_ERROR,
                    reason: .unsupported,
                    message: "\(address) needs requests that are signed, which the plain build cannot do."
                )
            }
        }

        init(_ address: ObjectStoreAddress, _ client: ObjectStoreClient) {
            (self.address, self.client) = (address, client)
            name = address.description
        }

        deinit {
            release()
        }

        private func path(_ name: String) -> String { "\(address.bucket)/\(address.prefix)\(name)" }

        private func whole(_ name: String) -> String { "\(self.name)/\(name)" }

        // MARK: Reading

        /// The list that the store gives, and what is known to be missing in it.
        ///
        /// A list that is stale names objects that were removed, and lacks new ones. The first does no harm: a chunk that is
        /// taken for there is read before it counts, and what this shipper removed is left out. The second would: without
        /// its newest objects a repository looks shorter than what was reported as shipped, and without a snapshot its
        /// chunks look as if nobody needed them. So the end of the repository is asked for by name, which is never stale:
        /// the objects there have numbers in a row. And the lease has the names of the newest snapshots, which are written
        /// there first. What is missing in the middle is a gap, which is told.
        func objects(under part: String) throws(DatabaseError) -> [StoredObject] {
            var found: [String: StoredObject] = [:]
            var token: String?
            for _ in 0..<ObjectStoreStorage.mostParts {
                let list = try list(under: part, after: token)
                for object in list.objects where object.name.begins(with: "\(address.prefix)\(part)/") {
                    let name = String(decoding: object.name.utf8.dropFirst(address.prefix.utf8.count), as: UTF8.self)
                    // What other tools show as a folder.
                    if name.utf8.last == UInt8(ascii: "/") { continue }
                    found[name] = StoredObject(name: name, size: object.size)
                }
                guard let next = list.next else {
                    if part.isSame(as: ObjectName.generations) { try complete(&found) }
                    return Array(found.values)
                }
                guard next != token else { break }
                token = next
            }
            throw .damagedObject(whole(part), "its list does not end")
        }

        private func list(under part: String, after token: String?) throws(DatabaseError) -> ObjectStoreList {
            var request = ObjectStoreRequest(method: .get, path: address.bucket)
            request.mostBytes = ObjectStoreStorage.mostBytesOfList
            if let token { request.query.append(("continuation-token", ObjectStoreStorage.encoded(token))) }
            request.query += [
                ("encoding-type", "url"), ("list-type", "2"),
                ("prefix", ObjectStoreStorage.encoded("\(address.prefix)\(part)/")),
            ]
            let answer = try client.send(request, "list \(whole(part))")
            guard let list = ObjectStoreList(answer.body) else {
                throw .damagedObject(whole(part), "its list is none of an object store, or not whole")
            }
            return list
        }

        /// As it must be for a signature.
        private static func encoded(_ text: String) -> String {
            var encoded = ""
            for byte in text.utf8 {
                let scalar = Unicode.Scalar(byte)
                let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
                if isPlain || "-._~".unicodeScalars.contains(scalar) {
                    encoded.unicodeScalars.append(scalar)
                } else {
                    encoded += "%" + Hexadecimal.string([byte]).uppercased()
                }
            }
            return encoded
        }

        /// Adds what the list lacks, and leaves out what was removed.
        private func complete(_ found: inout [String: StoredObject]) throws(DatabaseError) {
            for name in removed { found[name] = nil }
            var snapshots = held?.snapshots
            if snapshots == nil { snapshots = ObjectStoreLease(try read(ObjectStoreLease.name))?.snapshots }
            for name in snapshots ?? [] where found[name] == nil && !removed.contains(name) {
                if let size = try size(name) { found[name] = StoredObject(name: name, size: size) }
            }
            // Behind each that is known the next one may be. What was removed counts, too: what follows it need not be gone.
            var known: [Int64: Set<Int64>] = [:]
            for name in Array(found.keys) + removed {
                switch ObjectName(name) {
                case .snapshot(let generation, let sequence)?, .segment(let generation, let sequence)?:
                    known[generation, default: []].insert(sequence)
                default: continue
                }
            }
            for (generation, sequences) in known {
                for sequence in sequences.sorted() { try followOn(generation, sequence, &found) }
            }
            var next = (known.keys.max() ?? 0) + 1
            while try add(.snapshot(generation: next, sequence: 0), to: &found) {
                try followOn(next, 0, &found)
                next += 1
            }
        }

        /// Adds the segments that follow one.
        private func followOn(
            _ generation: Int64,
            _ last: Int64,
            _ found: inout [String: StoredObject]
        ) throws(DatabaseError) {
            var sequence = last + 1
            func next() -> ObjectName { .segment(generation: generation, sequence: sequence) }
            while found[next().text] == nil, try add(next(), to: &found) { sequence += 1 }
        }

        /// - Returns: whether it is there.
        private func add(
            _ name: ObjectName,
            to found: inout [String: StoredObject]
        ) throws(DatabaseError) -> Bool {
            guard let size = try size(name.text) else { return false }
            found[name.text] = StoredObject(name: name.text, size: size)
            return true
        }

        /// How many bytes an object has; `nil` if there is none of this name.
        private func size(_ name: String) throws(DatabaseError) -> Int64? {
            let request = ObjectStoreRequest(method: .head, path: path(name))
            let answer = try client.send(request, "look for \(whole(name))", accepted: [404])
            guard answer.status != 404 else { return nil }
            guard let size = answer.headers["content-length"].flatMap({ Int64($0) }), size >= 0 else {
                throw .damagedObject(whole(name), "the object store does not say how long it is")
            }
            return size
        }

        func read(_ name: String, limit: Int?) throws(DatabaseError) -> [UInt8]? { try get(name, limit: limit)?.body }

        private func get(_ name: String, limit: Int?, attempts: Int? = nil) throws(DatabaseError) -> ObjectStoreAnswer?
        {
            var request = ObjectStoreRequest(method: .get, path: path(name))
            request.mostBytes = limit ?? ObjectStoreStorage.mostBytes
            if let limit {
                guard limit > 0 else { return ObjectStoreAnswer() }
                request.headers.append("Range: bytes=0-\(limit - 1)")
                // A store that knows no ranges sends all of it.
                request.mayCutOff = true
            }
            let answer = try client.send(request, "read \(whole(name))", accepted: [404, 416], attempts: attempts)
            switch answer.status {
            // That the bucket is not there must not look like a repository without this object.
            case 404:
                let code = answer.errorCode
                guard code == "NoSuchKey" else {
                    throw DatabaseError(
                        extendedCode: SQLITE_CANTOPEN,
                        reason: .noSuchFile,
                        message: """
                            Cannot read \(whole(name)): the answer was 404 \(code). Is the bucket there, and \
                            AWS_ENDPOINT_URL_S3 the address of an object store? Buckets are never made here.
                            """
                    )
                }
                return nil
            // It has no bytes.
            case 416: return ObjectStoreAnswer(status: 200, headers: answer.headers, body: [])
            default: return answer
            }
        }

        // MARK: Writing

        private enum Condition { case none, absent, unchanged(String) }
        private enum Result { case written, refused, unknownCondition }

        /// Sends bytes to be an object.
        private func put(
            _ bytes: [UInt8],
            as name: String,
            if condition: Condition,
            attempts: Int? = nil
        ) throws(DatabaseError) -> Result {
            var request = ObjectStoreRequest(method: .put, path: path(name))
            request.body = bytes
            switch condition {
            case .none: break
            case .absent: request.headers.append("If-None-Match: *")
            case .unchanged(let tag): request.headers.append("If-Match: \(tag)")
            }
            let answer = try client.send(
                request,
                "write \(whole(name))",
                accepted: [412, 501],
                attempts: attempts
            )
            switch answer.status {
            case 412: return .refused
            case 501:
                guard case .none = condition else { return .unknownCondition }
                throw DatabaseError(
                    extendedCode: SQLITE_IOERR,
                    reason: .ioError,
                    message: "Cannot write \(whole(name)): the store says that it cannot do that."
                )
            default: break
            }
            // Each object has a tag; what gives none is perhaps no object store.
            if answer.headers["etag"]?.isEmpty ?? true {
                guard try read(name) == bytes else {
                    throw DatabaseError(
                        extendedCode: SQLITE_IOERR,
                        reason: .unverified,
                        message:
                            "\(whole(name)) was accepted, and is not there as it was sent. It does not count as shipped."
                    )
                }
            }
            return .written
        }

        func write(_ objects: [NewObject]) throws(DatabaseError) -> [Bool] {
            var isNew: [Bool] = []
            for object in objects { isNew.append(try write(object.bytes, as: object.name)) }
            return isNew
        }

        private func write(_ bytes: [UInt8], as name: String) throws(DatabaseError) -> Bool {
            try keepLease()
            if case .snapshot? = ObjectName(name) { try announce(name) }
            let isWritten = try writeUnlessThere(bytes, as: name)
            if isWritten { removed.remove(name) }
            return isWritten
        }

        private func writeUnlessThere(_ bytes: [UInt8], as name: String) throws(DatabaseError) -> Bool {
            if heedsConditions != true, try size(name) != nil { return false }
            if heedsConditions != false {
                switch try put(bytes, as: name, if: .absent) {
                case .written: return true
                // Also if an attempt before was not known to have written it: then it holds these bytes, and the caller
                // compares them.
                case .refused: return false
                case .unknownCondition: heedsConditions = false
                }
            }
            _ = try put(bytes, as: name, if: .none)
            return true
        }

        /// What an object store has, it has durably.
        func makeDurable(_ names: [String]) {}

        func replace(_ bytes: [UInt8], as name: String) throws(DatabaseError) {
            try keepLease()
            // Without a condition nothing is refused.
            _ = try put(bytes, as: name, if: .none)
        }

        func remove(_ name: String) throws(DatabaseError) {
            try keepLease()
            let request = ObjectStoreRequest(method: .delete, path: path(name))
            let answer = try client.send(request, "remove \(whole(name))", accepted: [404])
            if answer.status == 404, answer.errorCode != "NoSuchKey" {
                throw DatabaseError(
                    extendedCode: SQLITE_CANTOPEN,
                    reason: .noSuchFile,
                    message: "Cannot remove \(whole(name)): the answer was 404. Is the bucket there?"
                )
            }
            if name.begins(with: ObjectName.generations) { removed.insert(name) }
        }

        // MARK: Lease

        /// Where there is no bucket, nothing can be left. A bucket stays where it is.
        @discardableResult
        func lease(known mark: RepositoryMark?) throws(DatabaseError) -> Bool {
            if held == nil { try takeLease() } else { try keepLease() }
            return true
        }

        private func takeLease() throws(DatabaseError) {
            let own = try ObjectStoreLease.own()
            own.claim()
            do throws(DatabaseError) {
                try begin(own)
            } catch {
                // It may be written, and is over all the same.
                if held == nil { own.giveUp() }
                throw error
            }
        }

        private func begin(_ lease: ObjectStoreLease) throws(DatabaseError) {
            var own = lease
            let known = try get(ObjectStoreLease.name, limit: nil)
            if let known {
                let other = try ObjectStoreLease(parsing: known.body, named: whole(ObjectStoreLease.name))
                guard other.isOver(known.headers) else { throw taken(other) }
                own.snapshots = other.snapshots
            }
            let tag = known?.headers["etag"]
            try take(own, if: known == nil ? .absent : tag.map { .unchanged($0) } ?? .none)
            // A store that does not know the condition may have had two at once: who is read back has it. The other one sees
            // that when it renews it, and until then is kept from doing harm by names that are written only once.
            guard let now = try get(ObjectStoreLease.name, limit: nil) else {
                throw .damagedObject(whole(ObjectStoreLease.name), "it is gone as soon as it was written")
            }
            let holder = try ObjectStoreLease(parsing: now.body, named: whole(ObjectStoreLease.name))
            guard holder.isSame(as: own) else { throw taken(holder) }
            held = own
            removed = []
            // Writing the same once more, if there is nothing, tells whether the store heeds that: there is something.
            heedsConditions = try put(own.bytes(), as: ObjectStoreLease.name, if: .absent) == .refused
        }

        private func take(_ lease: ObjectStoreLease, if condition: Condition) throws(DatabaseError) {
            let bytes = try lease.bytes()
            switch try put(bytes, as: ObjectStoreLease.name, if: condition) {
            case .written: return
            case .unknownCondition: _ = try put(bytes, as: ObjectStoreLease.name, if: .none)
            case .refused:
                // It may be that of an attempt before.
                guard let now = try read(ObjectStoreLease.name) else { throw taken(nil) }
                let holder = try ObjectStoreLease(parsing: now, named: whole(ObjectStoreLease.name))
                guard holder.isSame(as: lease) else { throw taken(holder) }
            }
        }

        private func taken(_ other: ObjectStoreLease?) -> DatabaseError {
            DatabaseError(
                extendedCode: SQLITE_BUSY,
                reason: .busy,
                message: """
                    \(name) is being written to by \(other?.owner ?? "another shipper"). Nothing was shipped. One store has one \
                    shipper. If that one is gone, its lease is over \(ObjectStoreLease.seconds) seconds after it was last at \
                    work.
                    """
            )
        }

        /// Renews the lease, if that is due. Without one, nothing happens.
        private func keepLease() throws(DatabaseError) {
            guard var own = held, own.isDue else { return }
            let tag = try requireHeld(own)
            own.renew()
            try take(own, if: heedsConditions == true ? .unchanged(tag) : .none)
            held = own
        }

        /// - Returns: the tag of the lease.
        private func requireHeld(_ own: ObjectStoreLease) throws(DatabaseError) -> String {
            let now = try get(ObjectStoreLease.name, limit: nil)
            let holder = try now.map { now throws(DatabaseError) in
                try ObjectStoreLease(parsing: now.body, named: whole(ObjectStoreLease.name))
            }
            guard let now, let holder, holder.isSame(as: own) else {
                held = nil
                throw taken(holder)
            }
            return now.headers["etag"] ?? "*"
        }

        /// Notes in the lease that a snapshot is about to be written.
        private func announce(_ snapshot: String) throws(DatabaseError) {
            guard var own = held else { return }
            let tag = try requireHeld(own)
            own.add(snapshot)
            own.renew()
            try take(own, if: heedsConditions == true ? .unchanged(tag) : .none)
            held = own
        }

        func release() {
            guard var own = held else { return }
            held = nil
            own.giveUp()
            own.isFree = true
            // If it cannot be given back, it is over after a while, or when this process has ended.
            guard let now = try? get(ObjectStoreLease.name, limit: nil, attempts: 1),
                let holder = try? ObjectStoreLease(parsing: now.body, named: name), holder.isSame(as: own),
                let bytes = try? own.bytes()
            else { return }
            let condition: Condition = heedsConditions == true ? .unchanged(now.headers["etag"] ?? "*") : .none
            // As above.
            _ = try? put(bytes, as: ObjectStoreLease.name, if: condition, attempts: 1)
        }
    }
#endif
