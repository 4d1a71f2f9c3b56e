import { describe, expect, it } from "vitest";
import { StatusError } from "../api/status.ts";
import { fakeClusterCommands, vendorctl } from "./testing/fake-context.ts";

describe("vendorctl on a good day", () => {
  it("shows its commands when it is asked for nothing", async () => {
    const { exit, out } = await vendorctl([]);
    expect(exit).toBe(0);
    expect(out).toContain("Usage: vendorctl");
    expect(out).not.toContain("start-demo");
    expect(out.trimEnd().split("\n").length).toBeLessThanOrEqual(43);
  });

  it("says its version as a table, JSON or YAML", async () => {
    expect((await vendorctl(["version", "--client"])).out).toMatch(/^COMPONENT +VERSION\nvendorctl +v\d+\.\d+\.\d+\n$/);
    expect(JSON.parse((await vendorctl(["version", "--client", "-o", "json"])).out)).toMatchObject({
      client: { version: expect.stringMatching(/^v\d/), node: process.version },
    });
    expect((await vendorctl(["version", "--client", "--output=yaml"])).out).toMatch(/^client:\n {2}version: v\d/);
  });

  it("prints fields by kubectl's templates", async () => {
    expect((await vendorctl(["version", "--client", "-o", "jsonpath={.client.version}"])).out).toMatch(/^v[\d.]+$/);
    expect((await vendorctl(["version", "--client", "-o=custom-columns=NODE:.client.node"])).out).toBe(
      `NODE\n${process.version}\n`,
    );
  });

  it("takes global flags before and after the command, and short ones with `=` as kubectl does", async () => {
    for (const argv of [
      ["-o=json", "cluster", "list"],
      ["cluster", "list", "-o=json"],
      ["cluster", "-o", "json", "list"],
    ]) {
      expect(JSON.parse((await vendorctl(argv)).out)).toHaveLength(1);
    }
  });
});

describe("vendorctl refuses bad input with one sentence, a code and a fix, and does nothing", () => {
  it.each([
    ["clster", "unknown command 'clster' [UNKNOWN_COMMAND]", "did you mean cluster?"],
    ["cluster upp", "unknown command 'upp' [UNKNOWN_COMMAND]", "did you mean up?"],
    ["zzz", "unknown command 'zzz' [UNKNOWN_COMMAND]", "vendorctl --help"],
    ["version --clint", "unknown option '--clint' [UNKNOWN_FLAG]", "did you mean --client?"],
    ["version extra", "too many arguments for 'version'", "--help"],
    ["explain", "missing required argument 'code' [USAGE]", "--help"],
    ["node", "missing required argument 'name' [USAGE]", "--help"],
    ["node node-1", "missing required argument 'what' [USAGE]", "--help"],
    ["node node-1 pods", 'the table cannot be "pods" [BAD_VALUE]', "one of bgp"],
    ["flows propose --api calico", '--api cannot be "calico" [BAD_VALUE]', "one of kubernetes, vendor"],
    ["flows enable --limit 3", "--limit is not for flows enable [USAGE]", "--help"],
    ["flows preview", "there is nothing to preview [USAGE]", "name files with -f"],
    ["flows preview --delete lock", '"lock" is not KIND/NAME [USAGE]', "--help"],
    ["flows preview --delete=", '--delete cannot be "" [BAD_VALUE]', "KIND/NAME"],
    ["flows preview --filename=", '--filename cannot be "" [BAD_VALUE]', "the path of a file or folder"],
    ["node node-1 bgp -o wide", "-o wide is for get, flows, history, list, not for node", "use table, json or yaml"],
    ["explain NOPE", "unknown code NOPE [UNKNOWN_CODE]", "use the code in brackets"],
    ["completion tcsh", 'the shell cannot be "tcsh" [BAD_VALUE]', "one of bash, zsh, fish"],
    ["version --kubeconfig=", '--kubeconfig cannot be "" [BAD_VALUE]', "the path of a kubeconfig file"],
    ["version --context=", '--context cannot be "" [BAD_VALUE]', "the name of a context"],
    ["version --as=", '--as cannot be "" [BAD_VALUE]', "the name of a user"],
    ["version --as-group=", '--as-group cannot be "" [BAD_VALUE]', "the name of a group"],
    ["version --namespace=", '--namespace cannot be "" [BAD_VALUE]', "the name of a namespace"],
    ["version -n", "option '-n, --namespace <name>' argument missing [USAGE]", "--help"],
    ["version -o xml", '--output cannot be "xml" [BAD_VALUE]', "one of table, json, yaml"],
    ["version -o JSON", '--output cannot be "JSON" [BAD_VALUE]', "one of table, json, yaml"],
    ["version -o jsonpath=", '--output cannot be "jsonpath=" [BAD_VALUE]', "a template, such as jsonpath="],
    [
      "version -o go-template={{.x}}",
      '--output cannot be "go-template={{.x}}" [BAD_VALUE]',
      "Go templates are not supported",
    ],
    [
      "version --client -o jsonpath={.x",
      "-o jsonpath={.x is not valid: { has no } [OUTPUT_TEMPLATE_INVALID]",
      "write it like",
    ],
    [
      "version -o jsonpath-file=/nowhere",
      "--output: /nowhere could not be read: ENOENT [FILE_NOT_READ]",
      "a file that exists",
    ],
    ["install -o jsonpath={.x}", "-o jsonpath is for get, status", "use table, json or yaml"],
    ["version -v=11", '--v cannot be "11" [BAD_VALUE]', "from 0 to 10"],
    ["version -v=-1", '--v cannot be "-1" [BAD_VALUE]', "from 0 to 10"],
    ["version --timeout=soon", '--timeout cannot be "soon" [BAD_VALUE]', "30s, 5m or 1h30m"],
    ["version --timeout=-5s", '--timeout cannot be "-5s" [BAD_VALUE]', "30s, 5m or 1h30m"],
    ["version --timeout=5s!", '--timeout cannot be "5s!" [BAD_VALUE]', "30s, 5m or 1h30m"],
    ["version --no-color=1", "unknown option '--no-color=1' [UNKNOWN_FLAG]", "did you mean --no-color?"],
    ["version --quiet=yes", "unknown option '--quiet=yes' [UNKNOWN_FLAG]", "--help"],
    ["version --client=yes", "unknown option '--client=yes' [UNKNOWN_FLAG]", "--help"],
    ["cluster up --name=Demo", '--name cannot be "Demo" [BAD_VALUE]', "lower-case letters"],
    ["cluster up --name=../x", '--name cannot be "../x" [BAD_VALUE]', "lower-case letters"],
    ["cluster up --name=", '--name cannot be "" [BAD_VALUE]', "lower-case letters"],
    ["cluster up --kind=gke", '--kind cannot be "gke" [BAD_VALUE]', "one of generic, iac, openshift, aks, eks, mke"],
    ["cluster up --nodes=0", '--nodes cannot be "0" [BAD_VALUE]', "from 1 to 1000"],
    ["cluster up --nodes=2.5", '--nodes cannot be "2.5" [BAD_VALUE]', "a whole number"],
    ["cluster up --nodes=1e3", '--nodes cannot be "1e3" [BAD_VALUE]', "a whole number"],
    ["cluster up --paper=no", "unknown option '--paper=no' [UNKNOWN_FLAG]", "--help"],
    ["cluster up --detach=no", "unknown option '--detach=no' [UNKNOWN_FLAG]", "did you mean --detach?"],
    ["cluster up --proxy=haproxy", '--proxy cannot be "haproxy" [BAD_VALUE]', "one of iptables, nftables, ipvs, none"],
    ["cluster up --datastore=sql", '--datastore cannot be "sql" [BAD_VALUE]', "one of api, etcd"],
    ["cluster up --installed=latest", '--installed cannot be "latest" [BAD_VALUE]', "a version such as v3.27"],
    [
      "cluster up --installed=v3.27 --method=snap",
      '--method cannot be "snap" [BAD_VALUE]',
      "one of operator, chart, manifest",
    ],
    ["cluster up --method=chart", "--method needs an older version [USAGE]", "add --installed"],
    ["cluster up --data-dir=", '--data-dir cannot be "" [BAD_VALUE]', "the path of a directory"],
    ["cluster up --port=0", '--port cannot be "0" [BAD_VALUE]', "from 1 to 65535"],
    ["cluster up --port=70000", '--port cannot be "70000" [BAD_VALUE]', "from 1 to 65535"],
    ["cluster up demo", "too many arguments for 'up'", "--help"],
    ["cluster down --name=a_b", '--name cannot be "a_b" [BAD_VALUE]', "lower-case letters"],
    ["cluster kubeconfig --name=-a", '--name cannot be "-a" [BAD_VALUE]', "lower-case letters"],
    ["cluster logs --name=a.b", '--name cannot be "a.b" [BAD_VALUE]', "lower-case letters"],
    ["cluster logs --tail=-1", '--tail cannot be "-1" [BAD_VALUE]', "a whole number"],
    ["cluster logs --tail=all", '--tail cannot be "all" [BAD_VALUE]', "a whole number"],
    ["cluster logs --follow=5", "unknown option '--follow=5' [UNKNOWN_FLAG]", "did you mean --follow?"],
    ["switch", "required option '--to <bpf|standard>' not specified [USAGE]", "add --to bpf or --to standard"],
    ["switch --to fast", '--to cannot be "fast" [BAD_VALUE]', "bpf (or ebpf), or standard (or nftables)"],
    ["install --dataplane x", '--dataplane cannot be "x" [BAD_VALUE]', "bpf (or ebpf), or standard (or nftables)"],
    ["rollback --dry-run=maybe", '--dry-run cannot be "maybe" [BAD_VALUE]', "one of client, server"],
    ["plan delete ippool default", "plan is not for delete [USAGE]", "use it for install, switch"],
    ["diff cluster down", "diff is not for cluster [USAGE]", "use it for install, switch"],
    ["plan rollback", "plan is not for rollback [USAGE]", "use it for install, switch"],
    ["auth can-i delete ippool default", "auth can-i is not for delete [USAGE]", "use it for install, switch"],
    ["cluster list --all", "unknown option '--all' [UNKNOWN_FLAG]", "--help"],
  ])("vendorctl %s", async (line, sentence, fix) => {
    const { exit, out, err, calls } = await vendorctl(line.split(" "));
    expect(err).toContain(`error: ${sentence}`);
    expect(err).toMatch(/ \[[A-Z_]+\]\n {2}fix: .+\n$/);
    expect(err).toContain(fix);
    expect({ exit, out, calls }).toEqual({ exit: 64, out: "", calls: [] });
  });

  it("puts the refusal in one line of JSON when JSON was asked for, even if the line could not be read", async () => {
    const { exit, err } = await vendorctl(["cluster", "up", "--nodes", "many", "-o", "json"]);
    expect(exit).toBe(64);
    expect(JSON.parse(err)).toEqual({
      event: "error",
      code: "BAD_VALUE",
      message: '--nodes cannot be "many"',
      fix: "use a whole number from 1 to 1000",
      exitCode: 64,
    });
  });
});

describe("vendorctl when something breaks", () => {
  const failing = (error: unknown) => ({ ...fakeClusterCommands([]), list: () => Promise.reject(error) });

  it("gives an unexpected failure a code and a sentence, and no stack", async () => {
    const { exit, err } = await vendorctl(["cluster", "list"], {
      commands: failing(new TypeError("x is undefined\nmore")),
    });
    expect(exit).toBe(1);
    expect(err).toBe(
      "error: unexpected error: x is undefined [INTERNAL]\n" +
        "  fix: run the command again with -v=8 for a stack trace, and report it\n",
    );
  });

  it("shows the stack to whoever asks with -v=8", async () => {
    const { err } = await vendorctl(["cluster", "list", "-v=8"], {
      commands: failing(new TypeError("x is undefined")),
    });
    expect(err).toContain("caused by TypeError: x is undefined\n    at ");
  });

  it("passes on what an API server refused, in its own words", async () => {
    const refusal = new StatusError(404, "NotFound", 'pods "web" not found');
    const { exit, err } = await vendorctl(["cluster", "list"], { commands: failing(refusal) });
    expect({ exit, err }).toEqual({ exit: 1, err: 'error: pods "web" not found [API_NOT_FOUND]\n' });
  });

  it("exits with 130 when it was interrupted", async () => {
    const aborted = Object.assign(new Error("aborted"), { name: "AbortError" });
    const { exit, err } = await vendorctl(["cluster", "list"], { commands: failing(aborted) });
    expect({ exit, err }).toEqual({ exit: 130, err: "error: interrupted [INTERRUPTED]\n" });
  });
});
