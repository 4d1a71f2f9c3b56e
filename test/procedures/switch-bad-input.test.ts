import { expect, it } from "vitest";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";

/** The command line is read before anything is asked of a cluster, so none is needed here, and none could be changed. */
it.each<[line: string, code: string, sentence: string]>([
  ["switch --to BPF --canary=", "BAD_VALUE", '--canary cannot be ""'],
  ["switch --to BPF --canary", "USAGE", "option '--canary <node>' argument missing"],
  ["switch --to BPF --wave-size 0", "BAD_VALUE", '--wave-size cannot be "0"'],
  ["switch --to BPF --wave-size 0%", "BAD_VALUE", '--wave-size cannot be "0%"'],
  ["switch --to BPF --wave-size 101%", "BAD_VALUE", '--wave-size cannot be "101%"'],
  ["switch --to BPF --wave-size 2.5", "BAD_VALUE", '--wave-size cannot be "2.5"'],
  ["switch --to BPF --wave-size half", "BAD_VALUE", '--wave-size cannot be "half"'],
  ["switch --to BPF --no-waves --canary a", "USAGE", "--canary and --no-waves exclude each other"],
  ["switch --to BPF --no-waves --wave-size 2", "USAGE", "--wave-size and --no-waves exclude each other"],
  ["switch --to BPF --no-waves=yes", "UNKNOWN_FLAG", "unknown option '--no-waves=yes'"],
  ["switch --to BPF --canary-traffic on", "BAD_VALUE", '--canary-traffic cannot be "on"'],
  ["switch --to BPF --canary-traffic", "USAGE", "option '--canary-traffic <when>' argument missing"],
  ["switch --to BPF --budget=", "BAD_VALUE", '--budget cannot be ""'],
  ["switch --to BPF --budget connections", "BAD_VALUE", '--budget cannot be "connections"'],
  ["switch --to BPF --budget connections=-1", "BAD_VALUE", '--budget cannot be "connections=-1"'],
  ["switch --to BPF --budget connections=1,connections=2", "BAD_VALUE", '--budget cannot be "connections=1,connec'],
  ["switch --to BPF --budget silence=1", "BAD_VALUE", '--budget cannot be "silence=1"'],
  ["switch --to BPF --budget silence=soon", "BAD_VALUE", '--budget cannot be "silence=soon"'],
  ["switch --to BPF --budget datagrams=1", "BAD_VALUE", '--budget cannot be "datagrams=1"'],
  ["switch --to BPF --budget datagrams=101%", "BAD_VALUE", '--budget cannot be "datagrams=101%"'],
  ["switch --to BPF --budget packets=1", "BAD_VALUE", '--budget cannot be "packets=1"'],
  ["upgrade --canary-traffic yes", "BAD_VALUE", '--canary-traffic cannot be "yes"'],
  ["upgrade --budget loss=1", "BAD_VALUE", '--budget cannot be "loss=1"'],
])("vendorctl %s", async (line, code, sentence) => {
  const { exit, out, err } = await vendorctl(["--kubeconfig", "/nowhere/kubeconfig", ...line.split(" ")]);
  expect({ exit, out, err }).toEqual({ exit: 64, out: "", err: expect.stringContaining(`[${code}]`) });
  expect(err).toContain(sentence);
});
