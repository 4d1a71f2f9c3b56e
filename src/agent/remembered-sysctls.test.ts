import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { rememberedSysctls, restoreSysctls } from "./remembered-sysctls.ts";

it("restores what a setting of the node was before it was first changed, over restarts of the agent", () => {
  const values = new Map([
    ["ipv4/ip_forward", "0"],
    ["ipv6/conf/all/forwarding", "1"],
    ["ipv4/conf/ven1/rp_filter", "2"],
  ]);
  const plain = {
    read: (path: string) => values.get(path),
    write(path: string, value: string) {
      const there = values.has(path);
      if (there) values.set(path, value);
      return there;
    },
  };
  const file = join(mkdtempSync(join(tmpdir(), "sysctls-")), "state", "sysctls.json");
  rememberedSysctls(plain, file).write("ipv4/ip_forward", "1");
  rememberedSysctls(plain, file).write("ipv4/conf/ven1/rp_filter", "1");
  // Changed by another program meanwhile, and by the next agent again.
  values.set("ipv4/ip_forward", "5");
  rememberedSysctls(plain, file).write("ipv4/ip_forward", "1");
  expect(restoreSysctls(plain, file)).toEqual(["ipv4/ip_forward=0"]);
  expect([...values.values()]).toEqual(["0", "1", "1"]);
});
