import Foundation
import Testing

/// Slots that this machine holds: its host key by systemd-creds, and a TPM 2. The programs are real, and scripts/setup
/// installs them; the scripts are those of the article, but for where the key and the TPM are.
@Suite(.hangLimit, .enabled(if: isEncrypting, "the plain build takes no key"))
struct SlotTokenTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.makeKey("key")
        try sandbox.succeed("create", "db", "--slots", "--no-recovery", "--key-file", "key")
        try sandbox.succeed("exec", "db", "CREATE TABLE t (a); INSERT INTO t VALUES (7)", "--key-file", "key")
    }

    private func script(_ name: String, _ lines: String) throws -> String {
        try sandbox.writeProgram(name, "#!/bin/sh\nset -eu\n" + lines + "\n")
    }

    private func holds(_ wrap: String, _ unwrap: String) throws {
        let added = try sandbox.run(
            [Tool.sealdb, "slots", "add", "db", "machine", "--key-file", "key"]
                + ["--new-wrap-command", wrap, "--new-unwrap-command", unwrap]
        )
        #expect(added.status == 0 && added.output.contains("opened the store with it"), "\(added.error)")
        let query = try sandbox.run(
            [Tool.sealdb, "query", "db", "SELECT a FROM t", "--format", "csv", "--unwrap-command", unwrap]
        )
        #expect(query.lines.last == "7", "\(query.error)")
    }

    private func isRefused(_ unwrap: String) throws {
        let query = try sandbox.run([Tool.sealdb, "query", "db", "SELECT a FROM t", "--unwrap-command", unwrap])
        #expect(query.status == 69, "\(query.error)")
    }

    @Test func systemdCredentials() throws {
        // The key of this machine is not touched: systemd takes that of a file, and makes it.
        let start = "export SYSTEMD_CREDENTIAL_SECRET=\(sandbox.path("host.secret"))"
        let unwrap = try script("unwrap", "\(start)\nexec systemd-creds decrypt --name=db - -")
        try holds(try script("wrap", "\(start)\nexec systemd-creds encrypt --with-key=host --name=db - -"), unwrap)
        // On another machine the same slot opens nothing.
        try FileManager.default.moveItem(atPath: sandbox.path("host.secret"), toPath: sandbox.path("other.secret"))
        try isRefused(unwrap)
    }

    @Test func aTPM() throws {
        for name in ["tpm", "other"] {
            try FileManager.default.createDirectory(atPath: sandbox.path(name), withIntermediateDirectories: false)
        }
        func scripts(_ name: String) throws -> (wrap: String, unwrap: String) {
            // Here is no resource manager, so the scripts have to free what they have loaded.
            let start = """
                export TPM2TOOLS_TCTI=swtpm:path=\(sandbox.path(name))/socket
                work=$(mktemp -d)
                trap 'rm -rf "$work"' EXIT
                cd "$work"
                tpm2_createprimary -Q -C o -c primary
                tpm2_flushcontext -t

                """
            let wrap = """
                tpm2_create -Q -C primary -i - -u public -r private
                tpm2_flushcontext -t
                base64 -w 0 public
                echo
                base64 -w 0 private
                """
            let unwrap = """
                read -r public
                read -r private || [ "$private" ]
                echo "$public" | base64 -d >public
                echo "$private" | base64 -d >private
                tpm2_load -Q -C primary -u public -r private -c object
                tpm2_flushcontext -t
                tpm2_unseal -c object
                tpm2_flushcontext -t
                """
            return (try script("\(name).wrap", start + wrap), try script("\(name).unwrap", start + unwrap))
        }
        for name in ["tpm", "other"] {
            let place = "\(sandbox.path(name))/socket"
            let started = try sandbox.run(
                ["/usr/bin/swtpm", "socket", "--tpm2", "--daemon", "--tpmstate", "dir=\(sandbox.path(name))"]
                    + ["--flags", "not-need-init,startup-clear", "--pid", "file=\(sandbox.path(name + ".pid"))"]
                    + ["--server", "type=unixio,path=\(place)", "--ctrl", "type=unixio,path=\(place).ctrl"]
            )
            #expect(started.status == 0, "\(started.error)")
        }
        defer { _ = try? sandbox.run(["/bin/sh", "-c", "kill $(cat tpm.pid) $(cat other.pid)"]) }
        let own = try scripts("tpm")
        try holds(own.wrap, own.unwrap)
        try isRefused(try scripts("other").unwrap)
    }
}
