import { expect, it } from "vitest";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";

/** The command line is read before anything is asked of a cluster, so none is needed here. */
it.each<[line: string, code: string, sentence: string]>([
  ["check --for everything", "BAD_VALUE", '--for cannot be "everything"'],
  ["check --pre --for upgrade", "USAGE", "--pre is before an installation, not before upgrade"],
  ["check --kind gke", "BAD_VALUE", '--kind cannot be "gke"'],
  ["check --dataplane xdp", "BAD_VALUE", '--dataplane cannot be "xdp"'],
  ["check --suppress NO_SUCH_CODE", "BAD_VALUE", '--suppress cannot be "NO_SUCH_CODE"'],
  ["check --suppress EBPF_SCTP,ebpf_vlan", "BAD_VALUE", '--suppress cannot be "ebpf_vlan"'],
  ["check --suppress= ", "BAD_VALUE", '--suppress cannot be ""'],
  ["check --strict=yes", "UNKNOWN_FLAG", "unknown option '--strict=yes'"],
  ["check --probe", "UNKNOWN_FLAG", "unknown option '--probe'"],
  ["check now", "USAGE", "too many arguments for 'check'"],
  ["check -o html", "BAD_VALUE", '--output cannot be "html"'],
  ["check --names cilium", "BAD_VALUE", '--names cannot be "cilium"'],
  ["check --timeout soon", "BAD_VALUE", '--timeout cannot be "soon"'],
  ["status --wath", "UNKNOWN_FLAG", "unknown option '--wath'"],
  ["status -o junit", "USAGE", "-o junit is for check, not for status"],
  ["status everything", "USAGE", "too many arguments for 'status'"],
  ["version -o short", "USAGE", "-o short is for check, not for version"],
  ["version --client --server", "UNKNOWN_FLAG", "unknown option '--server'"],
  ["cluster list -o junit", "USAGE", "-o junit is for check, not for list"],
  ["explain NO_SUCH_CODE", "UNKNOWN_CODE", "unknown code NO_SUCH_CODE"],
])("vendorctl %s", async (line, code, sentence) => {
  const { exit, out, err } = await vendorctl(line.split(" ").filter((word) => word !== ""));
  expect({ exit, out }).toEqual({ exit: 64, out: "" });
  expect(err).toContain(sentence);
  expect(err).toContain(`[${code}]`);
});
