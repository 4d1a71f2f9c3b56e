import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readInstallConfig } from "./config.ts";
import { installCni, uninstallCni } from "./install.ts";

const CONFLIST = JSON.stringify({
  name: "vendor",
  cniVersion: "1.0.0",
  plugins: [{ type: "vendor", socket: "/usual" }, { type: "portmap" }],
});

describe("installing the plugin on a node", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "cni-"));
    writeFileSync(join(root, "interpreter"), "runs things", { mode: 0o755 });
    writeFileSync(join(root, "bundle"), "does things");
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const install = (more: Record<string, string> = {}) =>
    installCni(
      readInstallConfig({
        CNI_BIN_DIR: join(root, "bin"),
        CNI_BIN_HOST_DIR: "/opt/cni/bin",
        CNI_CONF_DIR: join(root, "conf"),
        CNI_NETWORK_CONFIG: CONFLIST,
        ...more,
      }),
      { interpreter: join(root, "interpreter"), bundle: join(root, "bundle") },
    ).map((path) => path.slice(root.length));

  const config = () => ({ binDir: join(root, "bin"), confDir: join(root, "conf"), confName: "10-vendor.conflist" });

  it("puts what runs it, the plugin and last its configuration there, once", () => {
    expect(install()).toEqual(["/bin/.vendor/node", "/bin/vendor", "/bin/loopback", "/conf/10-vendor.conflist"]);
    expect(readFileSync(join(root, "bin/vendor"), "utf8")).toBe("#!/opt/cni/bin/.vendor/node\ndoes things");
    expect(statSync(join(root, "bin/vendor")).mode & 0o777).toBe(0o755);
    expect(readFileSync(join(root, "conf/10-vendor.conflist"), "utf8")).toBe(CONFLIST);
    expect(install()).toEqual([]);
  });

  it("replaces only what is not as it should be, and leaves no half-written file", () => {
    install();
    writeFileSync(join(root, "bundle"), "does more");
    expect(install()).toEqual(["/bin/vendor", "/bin/loopback"]);
    expect(readFileSync(join(root, "bin/vendor"), "utf8")).toContain("does more");
  });

  it("tells the plugin, and only it, where the agent listens on this node", () => {
    install({ CNI_SOCKET: "/elsewhere" });
    const { plugins } = JSON.parse(readFileSync(join(root, "conf/10-vendor.conflist"), "utf8")) as {
      plugins: object[];
    };
    expect(plugins).toEqual([{ type: "vendor", socket: "/elsewhere" }, { type: "portmap" }]);
  });

  it("writes nothing when the configuration is no list of plugins", () => {
    expect(() => install({ CNI_NETWORK_CONFIG: "{}" })).toThrow(/not a list of plugins/);
    expect(existsSync(join(root, "bin"))).toBe(false);
  });

  it("leaves a loopback plugin of others alone, at install and at removal", () => {
    mkdirSync(join(root, "bin"));
    writeFileSync(join(root, "bin/loopback"), "\x7fELF");
    expect(install()).not.toContain("/bin/loopback");
    uninstallCni(config());
    expect(readFileSync(join(root, "bin/loopback"), "utf8")).toBe("\x7fELF");
  });

  it("leaves nothing behind", () => {
    install();
    expect(uninstallCni(config())).toHaveLength(4);
    expect(existsSync(join(root, "bin/loopback"))).toBe(false);
    expect(existsSync(join(root, "bin/.vendor"))).toBe(false);
    expect(uninstallCni(config())).toEqual([]);
  });
});
